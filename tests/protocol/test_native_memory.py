"""Objects of native calls go when nobody holds them any more: nothing is kept of a request, or of a reply."""

import sys
from collections.abc import Callable

import pytest

from batches import make_batch
from korvet_fast._native import Frames, decode_batches
from korvet_fast.wire.kafka.shapes.produce import PRODUCE

ROWS = 200
LONG = bytes(1000)  # what lies behind it begins at a number that Python has no object of its own for
CALLS = 20
FIRST = bytes(70_000)  # of a frame: so much, and it is received into its place from there on


def _decode_records() -> None:
    rows = [{"index": index, "records": make_batch([LONG])} for index in range(ROWS)]
    topics = [{"name": "t", "partition_data": rows}]
    values = {"api_key": 0, "api_version": 9, "correlation_id": 1, "acks": 1, "topic_data": topics}
    frame = bytearray(PRODUCE.request.encode(values, 9))
    decoded = PRODUCE.request.decode(frame, 9, 1 << 20)
    assert len(decoded["topic_data"][0]["partition_data"]) == ROWS


def _view_frames() -> None:
    for _ in range(ROWS):
        frames = Frames(1 << 20)
        frames.feed((1 << 19).to_bytes(4, "big") + FIRST)
        view = frames.rest()
        assert view is not None
        assert len(view) > 1 << 16


def _view_batches() -> None:
    batch = bytes(make_batch([LONG]))
    entries = [
        b"*2\r\n$%d\r\n%d-1\r\n*2\r\n$5\r\nbatch\r\n$%d\r\n%b\r\n" % (len(b"%d-1" % at), at, len(batch), _at(batch, at))
        for at in range(ROWS)
    ]
    reply = b"*%d\r\n%b" % (ROWS, b"".join(entries))
    views, *_ = decode_batches(reply, 0, 0, 1 << 20)
    assert len(views) == ROWS


def _at(batch: bytes, offset: int) -> bytes:
    return offset.to_bytes(8, "big") + batch[8:]


@pytest.mark.parametrize("call", [_decode_records, _view_frames, _view_batches])
def test_nothing_is_kept_of_views(call: Callable[[], None]) -> None:
    call()
    before = sys.getallocatedblocks()
    for _ in range(CALLS):
        call()
    assert sys.getallocatedblocks() - before < ROWS
