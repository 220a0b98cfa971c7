"""Very many requests, or very many peers, each of them harmless."""

import struct
import threading
import time

from abuse.attack import Target, attack
from abuse.prepared import INVENTED, STEADY, THOUSAND
from abuse.wire import Line, encode
from batches import make_batch
from kafka_server import JOIN_GROUP, LIST_OFFSETS, METADATA, PRODUCE

_PORTION = 1 << 20
_UPLOADS = 300
_STORM = 300  # connections at a time


def pipeline(target: Target, requests: bytes) -> None:
    """Send all of this again and again, while another thread takes the answers."""
    with target.line() as line:

        def take() -> None:
            try:
                while line.socket.recv(_PORTION):
                    pass
            except OSError:
                return  # the broker ended it, or the time is up

        threading.Thread(target=take, daemon=True).start()
        while target.left() > 0:
            line.send(requests)


@attack("2.8a", "200,000 ApiVersions in one go, again and again (2.8 MB)")
def pipeline_api_versions(target: Target, worker: int) -> None:
    requests = struct.pack(">ihhih", 10, 18, 0, 1, -1) * 200_000
    pipeline(target, requests)


@attack("2.8b", "60,000 JoinGroups in one go, again and again (3.3 MB)")
def pipeline_joins(target: Target, worker: int) -> None:
    values = {"group_id": f"joins-{worker}", "session_timeout_ms": target.session_ms, "rebalance_timeout_ms": 1000}
    values |= {"member_id": "", "protocol_type": "c", "protocols": [{"name": "r", "metadata": b""}]}
    requests = encode(JOIN_GROUP, 5, **values) * 60_000
    pipeline(target, requests)


@attack("2.11", "300 honest uploads of 1 MB at 50 KB/s", times=8)
def upload_slowly(target: Target, worker: int) -> int:
    rows = [{"index": worker, "records": make_batch([bytes(1_000_000)])}]
    topics = [{"name": INVENTED, "partition_data": rows}]
    request = memoryview(encode(PRODUCE, 9, acks=1, timeout_ms=1000, topic_data=topics))
    sent = {target.line(source=f"127.0.1.{1 + number % 100}"): 0 for number in range(_UPLOADS)}
    for line in sent:
        line.socket.settimeout(0)
    try:
        start, allowed = time.monotonic(), 0
        while target.left() > 0 and allowed < len(request):
            allowed = int(50_000 * (time.monotonic() - start))
            for line in list(sent):
                try:
                    sent[line] += line.socket.send(request[sent[line] : allowed])
                except BlockingIOError:
                    continue  # the broker does not read, and the upload waits
                except OSError:
                    line.close()
                    del sent[line]
            time.sleep(0.1)
        return _UPLOADS - len(sent)
    finally:
        for line in sent:
            line.close()


def storm(target: Target, requests: bytes) -> int:
    """Open hundreds of connections, send this on each, and close them at once; returns how many broke before that."""
    lines: list[Line] = []
    ended = 0
    try:
        for number in range(_STORM):
            lines.append(target.line(source=f"127.0.2.{1 + number % 100}"))
            try:
                lines[-1].send(requests)
            except OSError:
                ended += 1
    finally:
        for line in lines:
            line.close()
    return ended


@attack("2.16a", "300 connections at a time, each with 200 small requests (Metadata), closed at once")
def storm_with_metadata(target: Target, worker: int) -> int:
    return storm(target, encode(METADATA, 12, topics=[{"name": target.topic(STEADY, worker)}]) * 200)


@attack("2.16b", "300 connections at a time, each with 200 ListOffsets of 100 partitions, closed at once")
def storm_with_list_offsets(target: Target, worker: int) -> int:
    rows = [{"partition_index": index, "timestamp": -1} for index in range(100)]
    request = encode(LIST_OFFSETS, 7, replica_id=-1, topics=[{"name": THOUSAND, "partitions": rows}])
    return storm(target, request * 200)
