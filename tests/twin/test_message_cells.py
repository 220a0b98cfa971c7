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


def row_of(size: int) -> tuple[tuple[str, bytes], ...]:
    return (("name", bytes(size)),) if size else ()


@given(
    st.tuples(maybe_bytes, maybe_bytes, st.integers(0, 100), times),
    st.lists(messages, max_size=12),
    st.integers(0, 800),
    st.integers(0, 9),
    st.integers(0, 11),
)
@examples(300)
def test_messages_join_while_there_is_room(
    first: tuple[Any, Any, int, int], sent: list[tuple[Any, Any, int, int]], room: int, most: int, gone: int
) -> None:
    def call(impl: ModuleType) -> object:
        value, key, size, one = first
        run = impl.MessageCells(value, key, row_of(size), size, one)
        steps: list[Any] = [run.room, run.most, run.add(b"", None, (), 0, 0)]  # a new one has no room
        run.grant(room, most)
        for value, key, size, stamp in sent:
            steps.append((run.add(value, key, row_of(size), size, stamp), run.room))
        steps += [(run.time(place), run.key(place)) for place in range(len(run))]
        steps += [run.size, run.times(), run.values(), run.keys(), run.headers()]
        assert run.size == room - run.room + steps[0] + first_bytes(first)
        if gone < len(run):
            run.remove(gone)
        steps += [len(run), run.size, run.times(), run.values(), run.keys(), run.headers()]
        run.set_times(one)
        run.forget()
        return [*steps, len(run), run.times()]

    agree(call)


def first_bytes(first: tuple[Any, Any, int, int]) -> int:
    value, key, size, _ = first
    return 36 + len(value or b"") + len(key or b"") + size


def test_a_place_is_given_in_a_run_until_it_is_full(impl: ModuleType) -> None:
    before = time.time_ns() // 1_000_000
    run = impl.MessageCells(b"first", None, (), 0, None)
    run.grant(1000, 3)
    assert run.place(Cells, "run", 0) == ("run", 0)
    assert run.join(Cells, "run", b"a", None) == ("run", 1)
    assert run.join(Cells, "run", "not bytes", None) is None
    assert run.join(Cells, "run", None, b"k") == ("run", 2)
    assert run.join(Cells, "run", b"c", None) is None
    after = time.time_ns() // 1_000_000
    assert (run.values(), run.keys()) == ([b"first", b"a", None], [None, None, b"k"])
    assert run.headers() == [(), (), ()]
    assert run.room == 1000 - 2 * 36 - 2
    assert all(before <= each <= after for each in memoryview(run.times()))


plain = st.lists(st.tuples(maybe_bytes, maybe_bytes, times), min_size=1, max_size=12)


def run_of(impl: ModuleType, sent: list[tuple[bytes | None, bytes | None, int]], last_headers: bool = False) -> Any:
    """A run of these messages; the last one may have headers."""
    size = len(sent) - 1
    rows: list[Any] = [()] * size + [(("name", b"value"),) if last_headers else ()]
    (value, key, stamp), *rest = sent
    run = impl.MessageCells(value, key, rows[0], 0, stamp)
    run.grant(1 << 20, len(sent))
    for (value, key, stamp), row in zip(rest, rows[1:], strict=True):
        assert run.add(value, key, row, 0, stamp) > 0
    return run


@given(plain, st.integers(0, 5), st.integers(-1, 1 << 40), st.booleans())
@examples(200)
def test_a_run_becomes_a_batch_of_its_own(
    sent: list[tuple[bytes | None, bytes | None, int]], compression: int, producer: int, headers: bool
) -> None:
    def call(impl: ModuleType) -> object:
        values, keys = [value for value, _, _ in sent], [key for _, key, _ in sent]
        batch = run_of(impl, sent, headers).build(compression, producer, 0, 7)
        if batch is None or compression:
            return batch is None  # compressors choose for themselves
        times_of_rows = column("q", [stamp for _, _, stamp in sent])
        assert bytes(batch) == bytes(impl.build_rows(keys, values, times_of_rows, compression, producer, 0, 7))
        return bytes(batch)

    agree(call)


@given(plain, st.lists(st.integers(0, 12), min_size=1, max_size=8), st.booleans())
@examples(200)
def test_a_part_has_the_messages_at_its_places(
    sent: list[tuple[bytes | None, bytes | None, int]], places: list[int], headers: bool
) -> None:
    def call(impl: ModuleType) -> object:
        run = run_of(impl, sent, headers)
        if max(places) >= len(sent):
            with pytest.raises(IndexError):
                run.part(places)
            return None
        part = run.part(places)
        assert part.values() == [sent[place][0] for place in places]
        assert part.keys() == [sent[place][1] for place in places]
        assert list(memoryview(part.times())) == [sent[place][2] for place in places]
        assert (part.room, part.most, part.add(b"", None, ())) == (0, len(places), -1)
        rows = run.columns().runs(None, 1 << 20, len(sent))
        assert [each.rows() for each in rows] == [list(range(len(sent)))]
        assert (rows[0].keys(), rows[0].values()) == (run.keys(), run.values())
        return [part.size, part.headers(), len(run), run.size]

    agree(call)


def test_nothing_but_bytes_is_a_key_or_a_value(impl: ModuleType) -> None:
    class Derived(bytes):
        pass

    with pytest.raises(TypeError):
        impl.MessageCells("text", None, (), 0, 1)
    with pytest.raises(TypeError):
        impl.MessageCells(None, bytearray(b"key"), (), 0, 1)
    run = impl.MessageCells(Derived(b"value"), None, (), 0, 1)
    run.grant(1000, 9)
    assert run.values() == [b"value"]
    assert run.add(Derived(b"value"), None, ()) == -1, "it is taken as a run of its own"


def test_there_is_nothing_where_no_message_is(impl: ModuleType) -> None:
    run = impl.MessageCells(b"value", b"key", (), 0, 1)
    for ask in (run.time, run.key, run.remove, lambda place: run.part([place])):
        with pytest.raises(IndexError):
            ask(1)


@pytest.mark.parametrize("less", range(0, 130, 7))
def test_a_batch_is_copied_up_to_16_kib(less: int) -> None:
    agree(lambda impl: impl.MessageCells(bytes(16 * 1024 - less), None, (), 0, 5).build(0, 7, 1, 3))
