"""A group's commits. What arrives while the store writes is written together when it has done so."""

import asyncio
from collections.abc import Mapping

from korvet_fast.core.groups.documents import Commit, Place, offset_key, unpack_commit
from korvet_fast.core.groups.records import Moved, Records
from korvet_fast.core.host import Host
from korvet_fast.errors import StoreError


class Offsets:
    """`stored`: what has become durable, by partition, and nothing else."""

    def __init__(self, host: Host, group_id: str, records: Records, packed: Mapping[Place, bytes]) -> None:
        self.stored = {place: unpack_commit(document) for place, document in packed.items()}
        self._host = host
        self._group_id = group_id
        self._records = records
        self._next: dict[Place, Commit | None] = {}
        self._round: asyncio.Future[None] | None = None  # what `_next` is written in
        self._writing: asyncio.Future[None] | None = None
        self._failure: BaseException | None = None  # after one, nothing is known of what is stored

    def put(self, changes: Mapping[Place, Commit | None]) -> "asyncio.Future[None]":
        """Set commits, or (None) remove them. Shared by all who ask meanwhile: never cancel it.

        Ends with None when they are durable, or as `Records.write` does.
        """
        self._next |= changes
        if self._round is None:
            self._round = asyncio.get_running_loop().create_future()
            self._round.add_done_callback(_look_at)
            if self._writing is None:
                self._host.start(self._write())
        return self._round

    def forget(self) -> None:
        """They have been removed from the registry together with the group."""
        gone = list(self.stored)
        self.stored.clear()
        for place in gone:
            self._show(place)

    @property
    def idle(self) -> bool:
        """Whether nothing is being written."""
        return self._writing is None and self._round is None

    async def rest(self) -> None:
        """Until all that was asked for has become durable, or failed."""
        waiting = [future for future in (self._writing, self._round) if future is not None]
        if waiting:
            await asyncio.wait(waiting)

    def _show(self, place: Place) -> None:
        commit = self.stored.get(place)
        log = f"{place.topic}:{place.partition}"
        self._host.store.show(log, self._group_id, commit.offset if commit is not None else None)

    async def _write(self) -> None:
        while self._round is not None:
            changes, self._next = self._next, {}
            self._writing, self._round = self._round, None
            await self._write_round(changes, self._writing)
            self._writing = None

    async def _write_round(self, changes: Mapping[Place, Commit | None], done: "asyncio.Future[None]") -> None:
        try:
            if self._failure is not None:
                raise self._failure
            await self._records.write(
                {
                    offset_key(self._group_id, place): commit.pack() if commit is not None else None
                    for place, commit in changes.items()
                }
            )
        except BaseException as failure:
            self._failure = failure
            done.set_exception(failure)
            if not isinstance(failure, Moved | StoreError):
                raise
            return
        for place, commit in changes.items():
            if commit is None:
                self.stored.pop(place, None)
            else:
                self.stored[place] = commit
            self._show(place)
        done.set_result(None)


def _look_at(future: "asyncio.Future[None]") -> None:
    future.exception()  # nobody has to be waiting
