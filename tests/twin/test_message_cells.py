"""Messages that join a run one by one: the same indexes, room and times in both implementations."""

import time
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.implementations import agree, column
from twin.profile import examples
from twin.strategies import maybe_bytes, times

cells = st.one_of(maybe_bytes, st.sampled_from(["text", bytearray(b"not bytes"), 7]))
messages = st.tuples(cells, cells, st.integers(0, 100), times)


class Cells(tuple[Any, ...]):
    """Where a message is: the run, and its index there."""

    __slots__ = ()

    def __new__(cls, *cells: Any) -> "Cells":
        return super().__new__(cls, cells)


@given(st.lists(messages, max_size=12), st.integers(0, 800), st.integers(0, 9), times, st.integers(0, 11))
@examples(300)
def test_messages_join_while_there_is_room(
    sent: list[tuple[Any, Any, int, int]], room: int, most: int, one: int, gone: int
) -> None:
    def call(impl: ModuleType) -> object:
        values: list[Any] = [b"first"]
        keys: list[Any] = [None]
        headers: list[Any] = [()]
        run = impl.MessageCells(values, keys, headers, column("q", [one]))
        steps: list[Any] = [run.room, run.most, run.add(b"", None, (), 0, 0)]  # a new one has no room
        run.room, run.most = room, most
        for value, key, size, stamp in sent:
            row = (("name", bytes(size)),)
            steps.append((run.add(value, key, row, size, stamp), run.room))
        steps += [run.time(place) for place in range(len(values))]
        steps.append(run.times())
        if gone < len(values):
            del values[gone], keys[gone], headers[gone]
            run.forget_time(gone)
        steps.append(run.times())
        run.set_times(one)
        return [*steps, run.times(), values, keys, headers]

    agree(call)


def test_a_place_is_given_in_a_run_until_it_is_full(impl: ModuleType) -> None:
    values: list[Any] = []
    keys: list[Any] = []
    headers: list[Any] = []
    run = impl.MessageCells(values, keys, headers, column("q", []))
    run.room, run.most = 1000, 2
    before = time.time_ns() // 1_000_000
    assert run.join(Cells, "run", b"a", None) == ("run", 0)
    assert run.join(Cells, "run", "not bytes", None) is None
    assert run.join(Cells, "run", None, b"k") == ("run", 1)
    assert run.join(Cells, "run", b"c", None) is None
    after = time.time_ns() // 1_000_000
    assert (values, keys, headers) == ([b"a", None], [None, b"k"], [(), ()])
    assert run.room == 1000 - 2 * 36 - 2
    assert all(before <= each <= after for each in memoryview(run.times()))


plain = st.lists(st.tuples(maybe_bytes, maybe_bytes, times), min_size=1, max_size=12)


@given(plain, st.integers(0, 5), st.integers(-1, 1 << 40), st.booleans())
@examples(200)
def test_a_run_becomes_a_batch_of_its_own(
    sent: list[tuple[bytes | None, bytes | None, int]], compression: int, producer: int, headers: bool
) -> None:
    def call(impl: ModuleType) -> object:
        rows: list[Any] = [() for _ in sent[:-1]] + [(("name", b"value"),) if headers else ()]
        values, keys = [value for value, _, _ in sent], [key for _, key, _ in sent]
        run = impl.MessageCells(values, keys, rows, column("q", [stamp for _, _, stamp in sent]))
        batch = run.build(compression, producer, 0, 7)
        if batch is None or compression:
            return batch is None  # compressors choose for themselves
        times_of_rows = column("q", [stamp for _, _, stamp in sent])
        assert bytes(batch) == bytes(impl.build_rows(keys, values, times_of_rows, compression, producer, 0, 7))
        return bytes(batch)

    agree(call)


def test_no_time_without_a_message(impl: ModuleType) -> None:
    run = impl.MessageCells([], [], [], column("q", []))
    with pytest.raises(IndexError):
        run.time(0)
    with pytest.raises(IndexError):
        run.forget_time(0)
