"""Requests that make the stores work hard."""

import os
import threading

from abuse.attack import Target, attack
from abuse.prepared import BULK, STEADY, THOUSAND
from abuse.wire import Line, encode
from kafka_server import DELETE_RECORDS, FETCH, LIST_OFFSETS, OFFSET_COMMIT

_MIB = 1 << 20
_SPARED = 2000  # of the newest records: the consumer is there


@attack("2.13", "One consumer of 1,000 partitions that waits for records", stores=("files", "redis", "cluster"))
def wait_on_a_thousand_partitions(target: Target, worker: int) -> None:
    rows = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": _MIB} for index in range(1000)]
    topics = [{"topic": THOUSAND, "partitions": rows}]
    with target.line() as line:
        while target.left() > 0:
            line.send(encode(FETCH, 12, max_wait_ms=500, min_bytes=1, max_bytes=_MIB, topics=topics))
            line.receive()


@attack(
    "2.14a", "DeleteRecords on the log that others produce to, behind eight readers of cold records", stores=("files",)
)
def cut_behind_cold_reads(target: Target, worker: int) -> None:
    readers = [threading.Thread(target=_read_cold, args=(target,), daemon=True) for _ in range(8)]
    for reader in readers:
        reader.start()
    topic = target.topic(STEADY, worker)
    with target.line() as line:
        while target.left() > 0:
            row = {"partition_index": 0, "timestamp": -1}
            answer = line.ask(LIST_OFFSETS, 7, replica_id=-1, topics=[{"name": topic, "partitions": [row]}])
            until = answer["topics"][0]["partitions"][0]["offset"] - _SPARED
            rows = [{"partition_index": 0, "offset": max(until, 0)}]
            line.ask(DELETE_RECORDS, 2, topics=[{"name": topic, "partitions": rows}], timeout_ms=10_000)


def _read_cold(target: Target) -> None:
    assert target.data is not None
    topic = target.topic(BULK, 0)
    row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 15 * _MIB}
    topics = [{"topic": topic, "partitions": [row]}]
    with target.line() as line:
        while target.left() > 0:
            for path in target.data.glob(f"{topic}*/*"):  # as if others had filled the page cache meanwhile
                file = os.open(path, os.O_RDONLY)
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(file)
            try:
                _drain(line, encode(FETCH, 12, max_wait_ms=0, min_bytes=1, max_bytes=15 * _MIB, topics=topics))
            except (OSError, EOFError):
                return


def _drain(line: Line, request: bytes) -> None:
    line.send(request)
    line.receive()


@attack(
    "2.14b", "Commits of 20 groups, one after another, where many producers are remembered", stores=("files",), times=3
)
def commit_beside_much_state(target: Target, worker: int) -> None:
    with target.line() as line:
        for number in range(100_000_000):
            rows = [{"partition_index": 0, "committed_offset": number, "committed_metadata": ""}]
            topics = [{"name": target.topic(STEADY, worker), "partitions": rows}]
            values = {"generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
            groups = [f"commits-{group}" for group in range(20)]
            line.send(b"".join(encode(OFFSET_COMMIT, 8, group_id=group, **values) for group in groups))
            for _ in groups:
                line.receive()
