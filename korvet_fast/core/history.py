"""What a log has been through: where it ends, what its producers sent last, and who led it from where on.

What clients were told was stored keeps its offsets for ever: the next append goes above them, even where the records
are gone.
"""

import asyncio

from korvet_fast.core.epochs import Epochs
from korvet_fast.core.extent import Extent
from korvet_fast.core.host import Host
from korvet_fast.core.state import State
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.core.watermark import Watermark
from korvet_fast.store.interface import Attached, Bounds


class History(Extent):
    """`leader_epoch` rises whenever the log is taken over anew; it is -1 before the first time."""

    __slots__ = ("_forked", "_gap", "_held", "_saving", "_state", "_unsaved", "leader_epoch")

    def __init__(self, host: Host, topic: str, index: int, config: TopicConfig, mark: Watermark) -> None:
        super().__init__(host, topic, index, config, mark)
        self.leader_epoch = -1
        self._state = State(self.log)
        self._gap = (-1, 0)  # (end, top): with the log ending at `end`, its last record was below `top`
        self._held = -1  # `Host.forks` when the log was taken over; -1 while it is not
        self._forked = False  # the server's history broke, and nobody has looked yet what the new one has
        self._unsaved = 0  # bytes appended since the state was saved
        self._saving: asyncio.Task[None] | None = None

    async def _take_over(self, saved: bytes | None) -> None:
        stored, forks = self._stored, self._host.forks
        self._state.load(saved, self._host.clock.monotonic())
        known = self._state.saved_end
        await self._hold(await self._attach(max(self._mark.stored, known)), max(stored, known), known)
        self._held = forks

    async def _attach(self, floor: int) -> Attached:
        host = self._host
        # Where nobody else can take the log over, epochs count the starts of the broker.
        epoch = max(self.leader_epoch, self._state.epochs.last) + 1 if host.store.shared else 0
        self._held = -1
        return await host.store.attach(self.log, self.config.form, epoch=max(host.epoch, epoch), floor=floor)

    async def _hold(self, attached: Attached, stored: int, known: int) -> None:
        """Stand where the store says. Clients rely on all below `stored`; the state is that after `known`."""
        host, state = self._host, self._state
        bounds, epoch, top, headers, epochs = attached
        self._forked = False
        if top < stored:
            host.report_loss(self.log, max(top, self.start, bounds.removed), stored)
        if top < known and not host.store.shared:
            state.producers.forget(top)
        # Else no offset is used again, and what was acknowledged counts for its producer even if it is lost: the
        # producer goes on with what comes after it.
        self.leader_epoch = epoch
        self._gap = (bounds.end, top)
        self._bare, self._bare_end = top, bounds.end
        self._looked = host.clock.monotonic()
        self.start, self.end, self.size, self.removed = bounds.start, bounds.end, bounds.size, bounds.removed
        self._mark.reset(min(max(self.high_watermark, bounds.durable), bounds.end))
        self._await_durable()
        if self.single and top >= known:
            state.count_producers(headers, host.clock.monotonic())
        elif known < top:
            self._unsaved = await state.catch_up(host.store, max(known, bounds.start), top, host.clock.monotonic())
        if self.single:
            state.epochs = Epochs(list(epochs))  # its records do not tell
        else:
            state.epochs.add(epoch, bounds.end)
        host.version += 1
        if state.saved_end > top:
            # The saved copy has what is gone. The log will grow past its end, and it would be believed then.
            await self._save()

    @property
    def top(self) -> int:
        """The offset after the last record: `end`, unless there is a gap below it."""
        end, top = self._gap
        return top if end == self.end else self.end

    @property
    def _stored(self) -> int:
        """The offset after the last record that clients can rely on."""
        return min(self._mark.stored, self.top)

    @property
    def is_saved(self) -> bool:
        """Whether the registry knows the present state."""
        return self._state.saved_end == self.top

    async def save(self) -> None:
        """Put producers and epochs into the registry, so that the next opening reads only what comes after."""
        if self.led:
            await self._save()

    async def _save(self) -> None:
        end, top = self.end, self.top
        packed = self._state.pack(top)
        self._unsaved = 0
        await self._mark.wait()
        if end <= self.high_watermark and not self._deleted:
            await self._state.save(self._host.store, packed, top)

    def expire_producers(self, before: float) -> None:
        """Forget idempotent producers last heard of earlier than `before` (monotonic seconds)."""
        self._state.producers.expire(before)

    def _take(self, bounds: Bounds) -> None:
        super()._take(bounds)
        self._state.epochs.trim(self.start)
