"""Consumer groups, side by side: commits, a thousand members that join at once, and what their heartbeats cost.

    python -m benchmarks.groups [--stores embedded redis] [--seconds 5]

The requests are sent by this Python process; where it is the slower one, figures are the lower bound of the broker's.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers.korvet import Korvet
from benchmarks.peers.process import Peer
from benchmarks.peers.redis import Redis
from benchmarks.system import empty
from korvet_fast.client.connection import Connection, connect
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.commits import OFFSET_COMMIT
from korvet_fast.wire.kafka.shapes.groups import HEARTBEAT, JOIN_GROUP, SYNC_GROUP
from korvet_fast.wire.kafka.shapes.topics import CREATE_TOPICS

CONNECTIONS = 50  # that commit
GROUPS, MEMBERS = 100, 10  # of each group
INTERVAL = 3.0  # seconds between a member's heartbeats: the Java client's default
MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS = 79, 27


class Member(NamedTuple):
    connection: Connection
    group: str
    id: str
    generation: int
    joins: int


async def measure(peer: Peer, seconds: float) -> dict[str, float]:
    async with AsyncExitStack() as open_:

        async def dial() -> Connection:
            connection = await connect(Address("127.0.0.1", peer.port), 60.0)
            open_.push_async_callback(connection.close)
            return connection

        first = await dial()
        topic = {"name": "t", "num_partitions": CONNECTIONS, "replication_factor": 1}
        await first.request(CREATE_TOPICS, {"topics": [topic], "timeout_ms": 30_000})
        found = {}
        for groups in (1, CONNECTIONS):
            found |= await commit([await dial() for _ in range(CONNECTIONS)], groups, seconds)
        connections, crowd = [await dial() for _ in range(GROUPS * MEMBERS)], Crowd()
        began = time.perf_counter()
        joining = [join(connection, f"h{number % GROUPS}", crowd) for number, connection in enumerate(connections)]
        members = await asyncio.gather(*joining)
        found["s to settle"] = time.perf_counter() - began
        found["generations"] = max(member.generation for member in members)
        found["joins of a member"] = max(member.joins for member in members)
        return found | await heartbeat(peer, members, max(seconds, 2 * INTERVAL))


async def commit(connections: list[Connection], groups: int, seconds: float) -> dict[str, float]:
    """One partition a time, one commit at a time on each connection."""
    took: list[float] = []
    end = time.perf_counter() + seconds

    async def work(number: int, connection: Connection) -> None:
        offset = 0
        while (began := time.perf_counter()) < end:
            offset += 1
            row = {"partition_index": number, "committed_offset": offset, "committed_metadata": ""}
            topics = [{"name": "t", "partitions": [row]}]
            answer = await connection.request(OFFSET_COMMIT, {"group_id": f"c{number % groups}", "topics": topics})
            assert answer["topics"][0]["partitions"][0]["error_code"] == 0, answer
            took.append(time.perf_counter() - began)

    await asyncio.gather(*(work(*each) for each in enumerate(connections)))
    took.sort()
    title = f"{groups} group{'s' * (groups > 1)}"
    return {f"commits/s, {title}": len(took) / seconds, f"ms p99, {title}": took[int(len(took) * 0.99)] * 1000}


class Crowd:
    """Counts the members with an assignment; `complete` when all have one at the same time."""

    def __init__(self) -> None:
        self.complete = asyncio.Event()
        self._settled: set[Connection] = set()

    def note(self, connection: Connection, *, settled: bool) -> None:
        (self._settled.add if settled else self._settled.discard)(connection)
        if len(self._settled) == GROUPS * MEMBERS:
            self.complete.set()


async def join(connection: Connection, group: str, crowd: Crowd) -> Member:
    """Join, and join again whenever the group rebalances, until everybody has settled."""
    member_id, joins = "", 0
    while True:
        asked: dict[str, Any] = {"group_id": group, "member_id": member_id, "protocol_type": "consumer"}
        asked |= {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 60_000}
        joined = await connection.request(JOIN_GROUP, asked | {"protocols": [{"name": "range", "metadata": b"m" * 40}]})
        member_id = joined["member_id"]
        if joined["error_code"] == MEMBER_ID_REQUIRED:
            continue
        assert joined["error_code"] in (0, REBALANCE_IN_PROGRESS), joined
        joins += 1
        assigned = [{"member_id": row["member_id"], "assignment": b"a" * 40} for row in joined["members"]]
        asked = {"group_id": group, "member_id": member_id, "generation_id": joined["generation_id"]}
        given = {"protocol_type": "consumer", "protocol_name": "range", "assignments": assigned}
        if (await connection.request(SYNC_GROUP, asked | given))["error_code"]:
            continue
        crowd.note(connection, settled=True)
        while (await connection.request(HEARTBEAT, asked))["error_code"] == 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await crowd.complete.wait()
            if crowd.complete.is_set():
                return Member(connection, group, member_id, joined["generation_id"], joins)
        crowd.note(connection, settled=False)


async def heartbeat(peer: Peer, members: list[Member], seconds: float) -> dict[str, float]:
    """Everybody lives for a while; what that costs the broker."""
    heartbeats = 0
    before, began = spent(peer), time.perf_counter()

    async def live(number: int, member: Member) -> None:
        nonlocal heartbeats
        await asyncio.sleep(number * INTERVAL / len(members))
        asked = {"group_id": member.group, "member_id": member.id, "generation_id": member.generation}
        while time.perf_counter() < began + seconds:
            answer = await member.connection.request(HEARTBEAT, asked)
            assert answer["error_code"] in (0, REBALANCE_IN_PROGRESS), answer
            heartbeats += 1
            await asyncio.sleep(INTERVAL)

    await asyncio.gather(*(live(*each) for each in enumerate(members)))
    passed = time.perf_counter() - began
    return {"heartbeats/s": heartbeats / passed, "% of a core for them": 100 * (spent(peer) - before) / passed}


def spent(peer: Peer) -> float:
    """Seconds of processor time that the peer's processes have taken."""
    ticks = 0
    for pid in peer.pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def start(name: str, directory: Path) -> Iterator[Peer]:
    """All of them make a commit durable as they do by default: on files and on Redis that is a flush."""
    with ExitStack() as running:
        server = running.enter_context(Redis(directory, always=True)) if name == "redis" else None
        yield running.enter_context(Korvet(directory / "broker", redis=server))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stores = ["embedded", "redis"]
    parser.add_argument("--stores", nargs="+", choices=stores, default=stores)
    parser.add_argument("--seconds", type=float, default=5.0)
    asked = parser.parse_args()
    columns = {}
    for name in asked.stores:
        with empty() as directory, start(name, directory) as peer:
            columns[name] = asyncio.run(measure(peer, asked.seconds))
    print(f"{'':28}" + "".join(f"{name:>12}" for name in columns))
    for row in next(iter(columns.values())):
        print(f"{row:28}" + "".join(f"{column[row]:>12,.1f}" for column in columns.values()))


if __name__ == "__main__":
    main()
