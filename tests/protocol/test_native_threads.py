"""What the codec does for long it does without the interpreter: other threads go on meanwhile."""

import time
from collections.abc import Callable
from threading import Thread

import pytest
import zstandard

from korvet_fast import _native as native
from korvet_reference.header import Batch, write_batch
from korvet_reference.records import Record, write_record

ZSTD = 4
LIMIT = 1 << 28


def batch_of(payload: bytes, count: int) -> bytes:
    header = Batch(
        start=0, size=0, base_offset=0, last_offset=count - 1, count=count, leader_epoch=0, attributes=ZSTD,
        compression=ZSTD, log_append_time=False, transactional=False, control=False, first_timestamp=0,
        max_timestamp=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
    )  # fmt: skip
    return bytes(write_batch(header, zstandard.compress(payload)))


HEADERS = batch_of(write_record(Record(0, 0, None, None, [(b"", b"")] * 500_000)), 1)
RECORDS = batch_of(write_record(Record(0, 0, None, None, [])) * 130_000, 130_000)


def others_go_on(call: Callable[[], object]) -> bool:
    """Whether another thread was seen to run in the first half of what `call` takes alone."""
    begin = time.perf_counter()
    call()
    half = (time.perf_counter() - begin) / 2
    begun: list[float] = []

    def work() -> None:
        begun.append(time.perf_counter())
        call()

    thread = Thread(target=work)
    thread.start()
    seen = False
    while thread.is_alive():
        seen = seen or (bool(begun) and 0 < time.perf_counter() - begun[0] < half)
    thread.join()
    return seen


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
    assert any(others_go_on(call) for _ in range(20))
