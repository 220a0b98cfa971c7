"""Offsets as text, and asked for at brokers that do not answer at once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.client.protocol.errors import ClientError, ConnectionLost, broker_error
from korvet_fast.spark.offsets import OffsetQuery, list_offsets, read, read_json, write
from korvet_fast.types import LATEST
from spark_world import NOT_LEADER, World

written = st.dictionaries(
    st.tuples(st.text("ab.-_", min_size=1, max_size=3), st.integers(0, 200)), st.integers(0, (1 << 63) - 1), max_size=20
)


@given(written, st.randoms())
def test_the_text_is_in_order_and_says_the_same(found: dict[tuple[str, int], int], random: "object") -> None:
    text = json.dumps(write(found))
    assert read(json.loads(text)) == found == read_json(text, -2)
    shuffled = list(found.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert json.dumps(write(dict(shuffled))) == text
    for rows in json.loads(text).values():
        assert list(map(int, rows)) == sorted(map(int, rows))


class Troubled(World):
    """Answers ListOffsets with these errors first."""

    def __init__(self, *errors: ClientError) -> None:
        super().__init__(t=2)
        self.errors = list(errors)
        self.asked = 0

    def request(self, message: object, values: object) -> dict[str, object]:  # type: ignore[override]
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return super().request(message, values)  # type: ignore[arg-type]


def find(world: World, retries: int) -> dict[tuple[str, int], int]:
    return list_offsets(world, {("t", 0): LATEST, ("t", 1): LATEST}, OffsetQuery(False, retries, 0.0))  # type: ignore[arg-type]


def test_what_passes_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    world = Troubled(ConnectionLost("gone"), broker_error("the offsets of partition 0 of topic 't'", NOT_LEADER))
    assert find(world, 2) == {("t", 0): 0, ("t", 1): 0}
    assert world.forgotten == 2
    assert (
        "asking for offsets once more, after attempt 2 of 3: the offsets of partition 0 of topic 't': " in caplog.text
    )


def test_what_does_not_pass_and_what_passes_too_late() -> None:
    world = Troubled(ConnectionLost("gone"), ConnectionLost("gone again"))
    with pytest.raises(ConnectionLost, match="gone again"):
        find(world, 1)
    world = Troubled(ClientError("no Kafka"))
    with pytest.raises(ClientError, match="no Kafka"):
        find(world, 5)
    assert world.asked == 1
    del world.logs["t", 1]
    with pytest.raises(ClientError, match="the offsets of partition 1 of topic 't': There is no such topic"):
        find(world, 5)


def test_nothing_is_asked_for_nothing() -> None:
    world = Troubled()
    assert list_offsets(world, {}, OffsetQuery(True, 0, 0.0)) == {}  # type: ignore[arg-type]
    assert world.asked == 0
