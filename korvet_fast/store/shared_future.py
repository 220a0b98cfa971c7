"""The futures of an append (a leaf): many wait for one, and none of them can cancel it for the others."""

import asyncio


class SharedFuture(asyncio.Future[None]):
    """Ends with None or an exception. A task that is cancelled while it waits here goes on until the future ends."""

    def cancel(self, msg: object = None) -> bool:
        """Refused: the others still wait."""
        return False

    def fail(self, error: Exception) -> None:
        """End with an error, also where nobody waits for it."""
        self.set_exception(error)
        self.exception()
