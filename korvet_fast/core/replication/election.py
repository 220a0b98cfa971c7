"""The leader of the metadata log: this broker's promise, and its election when an operator names it.

Nobody is elected without an operator's word. A broker only takes up its own last leadership again, under a new epoch;
the broker with the lowest id leads first.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from korvet_fast.core.partition.leader_epochs import explain_last_epoch
from korvet_fast.core.replication.metadata_log import MetadataLog
from korvet_fast.core.replication.peers import NotCarriedOut, Peers, Vote, VoteRequest
from korvet_fast.core.replication.quorum import LogPosition, Promise, Voter, explain_defeat, is_elected
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import KeyStore
from korvet_fast.store.types import OffsetConflict

logger = logging.getLogger(__name__)

_MOMENT = 1.0  # seconds that the others have when most have answered
_CATCH_UP = 2.0  # seconds in which a candidate may copy what it lacks, from a leader that answers
_AGAIN = 0.02
_KEY = "vote"  # in this broker's own store: the highest epoch that it knows of, and the leader of that epoch


class Election:
    """`open`; then `leader` is whom this broker follows. `voters`: the ids of all brokers; `start` runs a task."""

    def __init__(
        self,
        own: int,
        voters: Sequence[int],
        log: MetadataLog,
        store: KeyStore,
        peers: Peers,
        start: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"],
    ) -> None:
        self._own = own
        self._voters = voters
        self._log = log
        self._store = store
        self._peers = peers
        self._start = start
        self._voter = Voter(-1, min(voters))
        self._saved: bytes | None = None
        self._is_open = False
        self._may_catch_up = False  # the last campaign was lost to records that are on their way here
        self._campaigning = asyncio.Lock()
        self._asking: set[asyncio.Task[None]] = set()  # the brokers that have not answered yet
        self._saving = asyncio.Lock()  # held from a promise until it is on disk

    @property
    def leader(self) -> int:
        """The id of the broker that leads, or stands for it."""
        return self._voter.leader

    @property
    def epoch(self) -> int:
        """The highest epoch that this broker knows of."""
        return self._voter.epoch

    @property
    def is_elected(self) -> bool:
        """Whether `leader` is known to have the votes: only the elected one writes records under its epoch."""
        return self._log.replica.epochs.last == self.epoch

    @property
    def position(self) -> LogPosition:
        """The end of this broker's copy."""
        replica = self._log.replica
        return LogPosition(replica.epochs.find_epoch(replica.end - 1), replica.end)

    async def open(self) -> None:
        """Read the last promise; the log is open. No candidate gets a vote before that. Raises `StoreError`."""
        self._saved = await self._store.load(_KEY)
        if self._saved is not None:
            self._voter = Voter(**json.loads(self._saved))
        if self.leader not in self._voters:
            raise StoreError(
                f"replication.peers has no broker {self.leader}, which leads @registry as far as this broker knows. "
                "Name it there again, on all brokers, and start them; before it is left out, have another one lead: "
                "korvet-fast partition lead @registry 0 --broker N"
            )
        self._is_open = True

    def close(self) -> None:
        """Wait for nobody any more."""
        for task in self._asking:
            task.cancel()

    async def _save(self) -> None:
        packed = json.dumps({"epoch": self._voter.epoch, "leader": self._voter.leader}).encode()
        if packed == self._saved:
            return
        if not await self._store.save(_KEY, packed, self._saved):
            raise StoreError("another program changed what this broker promised: no two may use one data directory")
        self._saved = packed

    async def vote(self, request: VoteRequest) -> Vote:
        """Answer a candidate; the promise is on disk. Raises `NotCarriedOut` and other `StoreError`s."""
        if not self._is_open:
            raise NotCarriedOut(f"broker {self._own} is starting")
        _check_epoch(request.epoch)
        async with self._saving:
            voter = Voter(self._voter.epoch, self._voter.leader) if request.trial else self._voter
            before = voter.epoch
            promise = voter.vote(
                request.candidate, request.epoch, request.position, self.position, unclean=request.unclean
            )
            if promise.granted and not request.trial:
                self._log.stop_leading()
                logger.info("broker %d has this one's vote for @registry, epoch %d", request.candidate, request.epoch)
                await self._save()
            known = promise.epoch if promise.granted and not request.trial else before
            answer = Promise(promise.granted, known, promise.position, self._log.replica.is_new)
            return Vote(answer, self._voter.leader, self.is_elected)

    async def learn_leader(self, leader: int, epoch: int, *, elected: bool = True) -> None:
        """A broker leads under this epoch, or did; unless `elected`, it may only stand for it. Raises `StoreError`.

        Only this broker knows of its last leadership, and nobody can be asked that replication.peers does not name.
        """
        if leader not in self._voters or (leader == self._own and epoch >= self._voter.epoch):
            return
        if explain_last_epoch(epoch):
            return  # nobody gave a vote for that
        async with self._saving:
            if self._voter.update_leader(leader, epoch, elected=elected):
                self._log.stop_leading()
                await self._save()

    async def ask_who_leads(self) -> None:
        """Ask the brokers that can be reached for the leader. Raises `StoreError`."""
        await self._collect(VoteRequest(self._own, -1, self.position, trial=True))

    async def become_leader(self, *, unclean: bool = False) -> str:
        """Lead the metadata log if most brokers agree; returns why not, or "". Raises `StoreError`.

        An operator named this broker. Returns when all earlier records are settled.
        """
        if not self._is_open:
            return f"broker {self._own} is starting, and has not read yet what it promised: try again"
        now, followed = asyncio.get_running_loop().time, self.leader
        until = now() + _CATCH_UP
        while True:
            why = await self._try_to_lead(unclean=unclean)
            if not why or not self._may_catch_up or now() >= until or self.leader not in (followed, self._own):
                return why
            await asyncio.sleep(_AGAIN)

    async def _try_to_lead(self, *, unclean: bool) -> str:
        async with self._campaigning:  # this broker may be trying already to take up its last leadership
            if self._is_leading:
                await self.ask_who_leads()  # nobody tells a leader that was cut off of the next one
            return self._log.failure if self._is_leading else await self._campaign(unclean=unclean)

    async def resume_leading(self) -> str:
        """As `become_leader`, but only while nobody named another broker."""
        async with self._campaigning:
            await self.ask_who_leads()
            return "" if self._is_leading or self.leader != self._own else await self._campaign(unclean=False)

    @property
    def _is_leading(self) -> bool:
        return self._log.is_ready and self.leader == self._own

    async def _campaign(self, *, unclean: bool) -> str:
        self._may_catch_up = False
        request = VoteRequest(self._own, self.epoch + 1, self.position, trial=True, unclean=unclean)
        votes = await self._collect(request)
        known = max((vote.promise.epoch for vote in votes.values()), default=-1)
        if known >= request.epoch:
            request = request._replace(epoch=known + 1)
            votes = await self._collect(request)
        why = explain_last_epoch(request.epoch) or self._count(votes, request)
        if why:
            present = votes.get(self.leader)
            self._may_catch_up = present is not None and present.promise.position > request.position
            return why
        async with self._saving:
            if request.epoch <= self._voter.epoch:
                return "another broker was named meanwhile: try again"
            self._voter.update_leader(self._own, request.epoch, elected=False)
            await self._save()
        request = request._replace(trial=False, position=self.position)  # it may have copied more meanwhile
        why = self._count(await self._collect(request), request)
        self._may_catch_up = bool(why)  # what was on its way here when it stood may have come by now
        if why or self.leader != self._own or self.epoch != request.epoch:
            return why or "another broker was named meanwhile: try again"
        try:
            await self._log.begin_leading(request.epoch, self._voters, unclean=request.unclean)
        except OffsetConflict:
            return "another broker was named meanwhile: try again"
        logger.info("this broker leads @registry, the metadata log, under epoch %d", request.epoch)
        return ""

    def _count(self, votes: Mapping[int, Vote], request: VoteRequest) -> str:
        promises = {voter: vote.promise for voter, vote in votes.items()}
        promises[self._own] = Promise(True, request.epoch, request.position, self._log.replica.is_new)
        if is_elected(promises, len(self._voters), request.position, unclean=request.unclean):
            return ""
        return explain_defeat(promises, len(self._voters), request.position)

    async def _collect(self, request: VoteRequest) -> dict[int, Vote]:
        """The votes that decide. A broker that hangs is waited for only a moment longer than most of the others."""
        votes: dict[int, Vote] = {}
        asking = {self._start(self._ask(voter, request, votes)) for voter in self._voters if voter != self._own}
        self._asking |= asking
        for task in asking:
            task.add_done_callback(self._asking.discard)
        while asking and not self._is_decided(votes, request):
            moment = _MOMENT if self._is_majority(votes) else None
            done, asking = await asyncio.wait(asking, timeout=moment, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                break
        return dict(votes)

    async def _ask(self, voter: int, request: VoteRequest, votes: dict[int, Vote]) -> None:
        """Ask one broker for its vote; if it follows a later leader than this broker, it is believed, however late."""
        try:
            vote = await self._peers.vote(voter, request)
            _check_epoch(vote.promise.epoch)
            votes[voter] = vote
            if not vote.promise.granted:
                await self.learn_leader(vote.leader, vote.promise.epoch, elected=vote.elected)
        except StoreError as error:
            logger.debug("broker %d gives no vote: %s", voter, error.detail)

    def _is_majority(self, votes: Mapping[int, Vote]) -> bool:
        """Whether more than half of all brokers have answered, this one included."""
        return len(votes) + 1 > len(self._voters) // 2

    def _is_decided(self, votes: Mapping[int, Vote], request: VoteRequest) -> bool:
        if request.epoch < 0:  # only to learn of the leader
            return self._is_majority(votes)
        return not self._count(votes, request)


def _check_epoch(epoch: int) -> None:
    """Raises `StoreError` for an epoch of the metadata log that no broker can have."""
    if why := explain_last_epoch(epoch):
        raise StoreError(why)
