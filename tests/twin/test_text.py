"""The text protocol's bytes, in both implementations."""

from types import ModuleType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batches import make_batch
from twin.implementations import IMPLEMENTATIONS, agree

LINES = st.lists(
    st.sampled_from(
        [
            b"V1|1|PRODUCE|t k:v",
            b"V1|2|PRODUCE|u :v acks=all",
            b"V1|3|PRODUCE|t a b:c d acks=1\r",
            b"V1|4|PRODUCE|t",
            b"V1|5|PRODUCE|t k:v acks=2",
            b"V1|6|PRODUCE|. k:v",
            b"V1|7|PRODUCE|t k\xff:v",
            b"V1|8|PRODUCE|t k\r:v",
            b"V1|9|PRODUCE|t k:\0",
            b"V1|10|PING|",
            b"",
        ]
    )
    | st.binary(max_size=30).filter(lambda line: b"\n" not in line),
    max_size=12,
)


@given(LINES, st.integers(1, 40), st.integers(1, 5), st.integers(5, 60))
def test_lines(lines: list[bytes], step: int, most: int, limit: int) -> None:
    stream = b"".join(line + b"\n" for line in lines)

    def call(codec: ModuleType) -> list[Any]:
        cut, given = codec.Lines(limit), []
        for start in range(0, len(stream), step):
            given += [bytes(one) for one in cut.feed(stream[start : start + step], most)]
            given.append(cut.pending)
        while more := cut.feed(b"", most):
            given += [bytes(one) for one in more]
        return [*given, cut.pending, cut.announced, cut.rest()]

    agree(call)


@given(LINES, st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(60, 200)), max_size=3))
def test_runs(lines: list[bytes], plans: list[tuple[int, int, int]]) -> None:
    stream = b"".join(line + b"\n" for line in lines)

    def call(codec: ModuleType) -> list[Any]:
        run = codec.ProduceRun(stream)
        built, after = run.build(plans, 1234)
        outcomes = [("", 10 * at, 99) if at % 2 else ("STORAGE_ERROR|no", 0, 0) for at in range(len(built))]
        told = run.answer(outcomes, ["UNKNOWN_TOPIC|none"])
        return [run.topics, run.all, [[one[0], one[1], bytes(one[2])] for one in built], list(after), told]

    agree(call)


@given(
    st.lists(st.binary(max_size=20) | st.text(max_size=10).map(str.encode), min_size=1, max_size=20),
    st.integers(0, 4),
    st.integers(0, 25),
    st.integers(0, 25),
    st.integers(0, 3),
    st.integers(0, 10),
    st.integers(0, 60),
    st.integers(0, 25),
)
def test_messages(
    values: list[bytes],
    compression: int,
    start: int,
    limit: int,
    encoding: int,
    messages: int,
    size: int,
    value: int,
) -> None:
    half = len(values) // 2
    batches = b"".join(
        bytes(make_batch(some, compression=compression, base_offset=base))
        for some, base in ((values[:half], 0), (values[half:], half))
        if some
    )

    def call(codec: ModuleType) -> list[Any]:
        text, many, after, full = codec.write_messages(batches, start, limit, encoding, messages, size, value, 1 << 20)
        return [bytes(text), many, after, full]

    agree(call)


def test_nothing_is_read_into_a_place() -> None:
    for codec in IMPLEMENTATIONS.values():
        assert agree(lambda codec: codec.Lines(10).advance(1)) == ("error", "BAD_VALUE")
        assert codec.Lines(10).rest() is None
