"""`consume --group`: reads as a member of a consumer group, and commits what was printed."""

import asyncio

from korvet_fast.cli.offset_target import Target, find_positions, say_if_beyond
from korvet_fast.cli.record_printer import RecordPrinter
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.consumer import Consumer, find_offset
from korvet_fast.client.group_member import GroupMember
from korvet_fast.client.groups import fetch_committed
from korvet_fast.types import LATEST

COMMIT_INTERVAL = 1.0  # seconds between two commits


class _Committer:
    """Commits what a printer has printed, now and then and when asked."""

    def __init__(self, member: GroupMember, printer: RecordPrinter) -> None:
        self._member = member
        self._printer = printer
        self._committed: dict[int, int] = {}
        self._due = 0.0

    async def commit(self) -> None:
        if self._printer.next_offsets != self._committed:
            self._committed = dict(self._printer.next_offsets)
            await self._member.commit(self._committed)

    async def commit_if_due(self) -> bool:
        """Whether this member still has its partitions."""
        now = asyncio.get_running_loop().time()
        if now >= self._due:
            self._due = now + COMMIT_INTERVAL
            await self.commit()
        return not self._member.lost.is_set()


async def read_in_group(
    cluster: Cluster, topic: str, start: Target, group: str, until_end: bool, printer: RecordPrinter
) -> None:
    """Print what falls to a member of the group; a partition that it committed nothing of begins at `start`.

    Raises `ClientError`.
    """
    await cluster.partitions(topic)  # a topic that is not there is said at once
    async with GroupMember(cluster, group, topic) as member:
        while True:
            positions, ends = await _find_positions(cluster, topic, start, group, until_end, await member.join())
            printer.next_offsets.clear()
            committer = _Committer(member, printer)
            if not positions and not until_end:  # the others have them all
                await member.lost.wait()
                continue
            limits = ends if until_end else None
            try:
                enough = await printer.print_all(Consumer(cluster, topic, positions), limits, committer.commit_if_due)
            finally:
                await committer.commit()  # also what was printed before Ctrl-C
            if enough:
                return


async def _find_positions(
    cluster: Cluster, topic: str, start: Target, group: str, until_end: bool, partitions: list[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Where the group goes on in each of the partitions, and where each ends now."""
    committed = await fetch_committed(cluster, group)
    fresh = [each for each in partitions if (topic, each) not in committed]
    positions, ends = await find_positions(cluster, topic, start, fresh)
    if not until_end:
        say_if_beyond(topic, start, ends)
    for each in set(partitions) - set(fresh):
        positions[each] = committed[topic, each][0]
        ends[each] = await find_offset(cluster, topic, each, LATEST)
    return positions, ends
