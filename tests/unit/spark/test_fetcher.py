"""A range read as Arrow record batches: over gaps, through trouble, and what is said when it cannot go on."""

from typing import Any

import pyarrow as pa
import pytest

from korvet_fast.client.protocol.errors import ClientError, ConnectionLost
from korvet_fast.errors import CodecError
from korvet_fast.spark import fetcher, row
from korvet_fast.spark.options import Use
from korvet_fast.spark.plan import Range
from spark_world import NOT_LEADER, World, options

COLUMNS = ("value", "offset")
ARROW = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))),
}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(t=1).install(monkeypatch)


def read(start: int, end: int, columns: tuple[str, ...] = COLUMNS, **given: str) -> list[tuple[Any, ...]]:
    batches = fetcher.read(Range("t", 0, start, end), columns, options(Use.READ, **given))
    return [tuple(each.values()) for batch in batches for each in batch.to_pylist()]


def numbers(*offsets: int) -> list[tuple[bytes, int]]:
    return [(b"%d" % offset, offset) for offset in offsets]


def fill(world: World, *batches: range) -> None:
    for batch in batches:
        world.log().put([b"%d" % offset for offset in batch], at=batch.start)


def test_from_the_middle_of_one_batch_to_the_middle_of_another(world: World) -> None:
    fill(world, range(0, 4), range(4, 8), range(8, 12))
    assert read(2, 9) == numbers(*range(2, 9))
    assert read(0, 12) == numbers(*range(12))
    assert read(5, 5 + 1) == numbers(5)


def test_one_page_after_the_other(world: World) -> None:
    fill(world, *(range(start, start + 3) for start in range(0, 30, 3)))
    one = {"kafka.fetch.max.bytes": "1"}
    assert read(4, 29, **one) == numbers(*range(4, 29))
    assert world.fetches == [4, 6, 9, 12, 15, 18, 21, 24, 27]


def test_offsets_have_gaps(world: World) -> None:
    fill(world, range(100, 103), range(1000, 1003), range(10**15, 10**15 + 2))
    for limit in ("1", "1000000"):
        found = read(0, 10**15 + 2, **{"kafka.fetch.max.bytes": limit})
        assert found == numbers(100, 101, 102, 1000, 1001, 1002, 10**15, 10**15 + 1)
    assert read(103, 999) == []
    assert read(500, 1001) == numbers(1000)


def test_nothing_up_to_the_end_is_believed_when_it_is_said_twice(world: World) -> None:
    fill(world, range(0, 2))
    world.log().end = 50
    assert read(0, 40) == numbers(0, 1)
    assert world.fetches == [0, 2, 2]
    world.fetches.clear()
    world.log().end = 30  # a broker that does not know yet what there is
    with pytest.raises(ClientError, match=r"cannot be read from offset 2 on: nothing came within 0.3 s"):
        read(0, 40)
    assert len(world.fetches) > 3
    world.log().end, world.throttle = 50, 5  # one that says nothing because too much was asked of it
    with pytest.raises(ClientError, match=r"from offset 2 on: nothing came within 0.3 s .*pollTimeoutMs"):
        read(0, 40)


def test_trouble_that_passes(world: World) -> None:
    fill(world, range(0, 3), range(3, 6))
    world.next.extend([NOT_LEADER, ConnectionLost("gone"), 0, NOT_LEADER, NOT_LEADER])
    assert read(0, 6, **{"kafka.fetch.max.bytes": "1", "kafkaConsumer.pollTimeoutMs": "30000"}) == numbers(*range(6))
    assert world.fetches == [0, 0, 0, 3, 3, 3]
    assert world.forgotten == 4


def test_trouble_that_does_not_pass(world: World) -> None:
    fill(world, range(0, 3))
    world.next.extend([0] + [NOT_LEADER] * 100)
    world.log().end = 9
    with pytest.raises(ClientError) as failure:
        read(0, 9)
    assert str(failure.value) == (
        "partition 0 of topic 't' cannot be read from offset 3 on: nothing came within 0.3 s (option "
        "'kafkaConsumer.pollTimeoutMs'); partition 0 of topic 't': This broker does not lead the partition "
        "(NOT_LEADER_OR_FOLLOWER)"
    )
    world.next.clear()
    world.next.append(29)
    with pytest.raises(
        ClientError, match=r"partition 0 of topic 't' cannot be read from offset 0 on: .*TOPIC_AUTHORIZATION_FAILED"
    ):
        read(0, 3)
    world.next.append(ClientError("no Kafka"))
    with pytest.raises(ClientError, match="cannot be read from offset 1 on: no Kafka"):
        read(1, 3)


def test_records_removed_while_they_are_read(world: World, caplog: pytest.LogCaptureFixture) -> None:
    fill(world, range(0, 3), range(3, 6), range(6, 9))
    one = {"kafka.fetch.max.bytes": "1"}
    part = Range("t", 0, 1, 9)
    for fail in ("true", "false"):
        world.log().start = world.log().removed = 0
        batches = fetcher.read(part, COLUMNS, options(Use.READ, failOnDataLoss=fail, **one))
        found = next(batches).to_pylist()
        world.log().trim(7)  # the next page may be there already
        if fail == "true":
            with pytest.raises(
                ClientError, match=r"from offset [36] on: it begins at offset 7 by now, so that [14] off"
            ):
                list(batches)
        else:
            rest = [each["offset"] for batch in batches for each in batch.to_pylist()]
            assert [each["offset"] for each in found] == [1, 2]
            assert rest in ([7, 8], [3, 4, 5, 7, 8])
            assert "but it begins at offset 7 by now" in caplog.text
    assert read(0, 5, failOnDataLoss="false") == []


def test_a_log_that_ends_earlier_by_now(world: World, caplog: pytest.LogCaptureFixture) -> None:
    fill(world, range(0, 3))
    with pytest.raises(ClientError, match="from offset 5 on: it ends at offset 3 by now; set option 'failOnDataLoss'"):
        read(5, 9)
    assert read(5, 9, failOnDataLoss="false") == []
    assert "it ends at offset 3 by now" in caplog.text


def test_a_topic_that_is_deleted(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.logs.clear()
    with pytest.raises(ClientError, match=r"from offset 5 on: nothing came .*UNKNOWN_TOPIC_OR_PARTITION"):
        read(5, 9)
    assert read(5, 9, failOnDataLoss="false") == []
    assert "is gone, and was read up to offset 5" in caplog.text


def test_a_damaged_batch(world: World) -> None:
    fill(world, range(0, 3), range(3, 6))
    world.log().data[-1] ^= 1
    batches = fetcher.read(Range("t", 0, 0, 6), COLUMNS, options(Use.READ))
    with pytest.raises(ClientError, match=r"partition 0 of topic 't' cannot be read from offset \d on.*BAD_CRC.*3"):
        list(batches)


def test_whoever_stops_early_waits_for_nothing(world: World) -> None:
    fill(world, range(0, 3), range(3, 6))
    world.next.extend([0] + [NOT_LEADER] * 10_000)
    one = {"kafka.fetch.max.bytes": "1", "kafkaConsumer.pollTimeoutMs": "3600000"}
    batches = fetcher.read(Range("t", 0, 0, 6), COLUMNS, options(Use.READ, **one))
    next(batches)
    batches.close()  # type: ignore[attr-defined]


def test_the_schema_is_the_one_spark_is_told(world: World) -> None:
    world.log().put([b"x"], time=1_700_000_000_123)
    for names in (tuple(row.TYPES), ("headers", "timestampType", "key")):
        (batch,) = fetcher.read(Range("t", 0, 0, 1), names, options(Use.READ))
        assert isinstance(batch, pa.RecordBatch)
        assert batch.schema.equals(pa.schema([(name, ARROW[name]) for name in names]), check_metadata=True)
        assert batch.schema.names == list(names)


def test_a_large_page_comes_in_pieces(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(world, *(range(start, start + 10) for start in range(0, 100, 10)))
    monkeypatch.setattr(fetcher, "MAX_ROWS", 25)
    batches = list(fetcher.read(Range("t", 0, 3, 97), COLUMNS, options(Use.READ)))
    assert [offset for batch in batches for offset in batch.column("offset").to_pylist()] == list(range(3, 97))
    assert all(batch.num_rows <= 35 for batch in batches)
    assert world.fetches == [3]


def test_readable_where_nothing_ever_was(world: World) -> None:
    fill(world, range(100, 103))
    world.log().start = 100
    assert fetcher.can_read(world, Range("t", 0, 0, 103), options(Use.READ))  # type: ignore[arg-type]
    world.log().trim(101)
    assert not fetcher.can_read(world, Range("t", 0, 0, 103), options(Use.READ))  # type: ignore[arg-type]
    world.next.append(CodecError("BAD_VALUE"))
    with pytest.raises(CodecError):
        fetcher.can_read(world, Range("t", 0, 0, 103), options(Use.READ))  # type: ignore[arg-type]
