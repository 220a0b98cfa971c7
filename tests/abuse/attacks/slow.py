"""Peers that send or take little at a time."""

import struct
import time

from abuse.attack import Target, attack
from abuse.prepared import BULK, SPREAD, SPREAD_PARTITIONS
from abuse.wire import Line, encode, sip
from kafka_server import FETCH

_MIB = 1 << 20
_SMALL = 16 * 1024  # a receive buffer that does not take the answer for them


def _all_of_bulk(topic: str) -> bytes:
    row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 55 * _MIB}
    topics = [{"topic": topic, "partitions": [row]}]
    return encode(FETCH, 12, max_wait_ms=0, min_bytes=1, max_bytes=55 * _MIB, topics=topics)


@attack("2.9", "Three connections, each 66 MiB of a request of 99 MiB, then 100 B every half second")
def send_most_of_a_request(target: Target, worker: int) -> None:
    lines = [target.line() for _ in range(3)]
    try:
        start = struct.pack(">ihhi", 99 * _MIB, 0, 9, 1)
        for line in lines:
            line.send(start)
            line.socket.settimeout(0)
        _push(target, lines, 66 * _MIB)
        while target.left() > 0:
            for line in lines:
                try:
                    line.socket.send(bytes(100))
                except BlockingIOError:
                    continue
            time.sleep(0.5)
    finally:
        for line in lines:
            line.close()


def _push(target: Target, lines: list[Line], size: int) -> None:
    """As much of this as the broker takes; what it does not read is kept for later, as any client would."""
    left = dict.fromkeys(lines, size)
    portion = bytes(_MIB)
    while target.left() > 0 and any(left.values()):
        for line in lines:
            try:
                left[line] -= line.socket.send(portion[: left[line]]) if left[line] else 0
            except BlockingIOError:
                continue
        time.sleep(0.001)


@attack("2.10a", "Four consumers that take answers of 55 MiB slowly")
def take_large_answers_slowly(target: Target, worker: int) -> int:
    lines = [target.line(buffer=_SMALL) for _ in range(4)]
    try:
        for number, line in enumerate(lines):
            line.send(_all_of_bulk(target.topic(BULK, number)))
        return sip(lines, 2000, 0.1, target.until)
    finally:
        for line in lines:
            line.close()


@attack("2.10b", "Ten honest consumers at 1 MB/s with the defaults of Java's client")
def consume_at_one_megabyte_a_second(target: Target, worker: int) -> int:
    lines = [target.line(source=f"127.0.2.{1 + number}") for number in range(10)]
    try:
        for number, line in enumerate(lines):
            rows = [
                {"partition": index, "fetch_offset": 0, "partition_max_bytes": _MIB}
                for index in range(SPREAD_PARTITIONS)
            ]
            topics = [{"topic": target.topic(SPREAD, number), "partitions": rows}]
            line.send(encode(FETCH, 12, max_wait_ms=500, min_bytes=1, max_bytes=50 * _MIB, topics=topics))
        return sip(lines, 50_000, 0.05, target.until)
    finally:
        for line in lines:
            line.close()


@attack("2.12", "40 connections, one Fetch of 50 MB each, taken slowly")
def hold_large_answers(target: Target, worker: int) -> int:
    lines = [target.line(buffer=_SMALL) for _ in range(40)]
    try:
        for number, line in enumerate(lines):
            line.send(_all_of_bulk(target.topic(BULK, number)))
        return sip(lines, 2000, 0.1, target.until)
    finally:
        for line in lines:
            line.close()
