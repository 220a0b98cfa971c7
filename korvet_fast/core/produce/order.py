"""The order of one connection's produces: batches are appended as they came, however long the check of one takes."""

import asyncio

from korvet_fast.core.client_session import ClientSession
from korvet_fast.core.partition.refused_batches import RefusedBatches
from korvet_fast.errors import Errors, KorvetError


class ProduceTurn:
    """The place of a produce that cannot append at once. It may append when `before` has ended; None: at once."""

    __slots__ = ("_ended", "_session", "before")

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self.before = session.last_produce
        self._ended = session.last_produce = asyncio.get_running_loop().create_future()

    def end(self) -> None:
        """Let the next produce of the connection append."""
        self._ended.set_result(None)
        if self._session.last_produce is self._ended:
            self._session.last_produce = None


def remember_refusal(
    session: ClientSession, topic: str, index: int, data: bytearray | memoryview | None, error: KorvetError
) -> None:
    """Remember a batch refused as NOT_LEADER_OR_FOLLOWER, so that batches sent behind it are refused too."""
    if error.error == Errors.NOT_LEADER_OR_FOLLOWER:
        if session.refused is None:
            session.refused = RefusedBatches()
        session.refused.add(f"{topic}:{index}", data)
