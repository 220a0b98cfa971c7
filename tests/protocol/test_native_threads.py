"""The codec does long work without the interpreter: other threads go on meanwhile."""

import sys
import time
from collections.abc import Callable, Iterator
from threading import Event, Thread, get_ident

import pytest
import zstandard

from korvet_fast import _native as native
from korvet_reference.header import Batch, write_batch
from korvet_reference.records import Record, write_record

ZSTD = 4
LIMIT = 1 << 28
PATIENCE = 60.0  # seconds
STALLED = 1.0  # seconds in which a thread that needs no interpreter gets some of a processor


def batch_of(payload: bytes, count: int) -> bytes:
    header = Batch(
        start=0, size=0, base_offset=0, last_offset=count - 1, count=count, leader_epoch=0, attributes=ZSTD,
        compression=ZSTD, log_append_time=False, transactional=False, control=False, first_timestamp=0,
        max_timestamp=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
    )  # fmt: skip
    return bytes(write_batch(header, zstandard.compress(payload)))


HEADERS = batch_of(write_record(Record(0, 0, None, None, [(b"", b"")] * 2_000_000)), 1)
RECORDS = batch_of(write_record(Record(0, 0, None, None, [])) * 1_300_000, 1_300_000)


@pytest.fixture
def no_forced_switches() -> Iterator[None]:
    """A thread keeps the interpreter until it lets go of it by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(10 * PATIENCE)
    yield
    sys.setswitchinterval(before)


def goes_on_without(call: Callable[[], object]) -> bool:
    """Whether `call` does half of its work while another thread has the interpreter and keeps it.

    Work is measured in processor time of the thread that calls, so it does not matter when threads are scheduled.
    """
    clock = time.pthread_getcpuclockid(get_ident())

    def cost() -> float:
        begin = time.clock_gettime(clock)
        call()
        return time.clock_gettime(clock) - begin

    half = min(cost() for _ in range(3)) / 2
    calling, seen, until = Event(), Event(), time.monotonic() + PATIENCE

    def watch() -> None:
        calling.wait()
        while not seen.is_set() and time.monotonic() < until:
            begin, stalled = time.clock_gettime(clock), time.monotonic() + STALLED
            while not seen.is_set() and time.monotonic() < stalled:
                if time.clock_gettime(clock) - begin > half:
                    seen.set()
            time.sleep(0)  # it came too late in a call: lets the next one begin

    thread = Thread(target=watch)
    thread.start()
    calling.set()
    while not seen.is_set() and time.monotonic() < until:
        call()
    thread.join()
    return seen.is_set()


@pytest.mark.usefixtures("no_forced_switches")
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda: native.validate_batch(HEADERS, LIMIT), id="finding_2_4_admit"),
        pytest.param(lambda: native.find_time(RECORDS, 1, LIMIT), id="finding_2_5_find_time"),
        pytest.param(lambda: native.to_columns(HEADERS, LIMIT), id="columns"),
        pytest.param(lambda: native.recompress(RECORDS, 1, LIMIT), id="recompress"),
    ],
)
def test_finding_2_4_what_expands_to_much_does_not_stop_others(call: Callable[[], object]) -> None:
    assert max(len(HEADERS), len(RECORDS)) < 16 * 1024  # small as they come
    assert goes_on_without(call)
