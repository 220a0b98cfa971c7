"""The loop polls for a moment after work: waking a sleeping processor takes longer than serving a small request.

A client that works request by request sends its next one some tens of microseconds after the broker's reply. If the
loop sleeps in between, the processor sleeps too, and on virtual machines it takes 30 to 60 microseconds to wake.

Where the store is a server, perhaps on this machine, it needs the processor for the requests under way: the loop then
polls only where the connection that was read has one of them at most.
"""

import asyncio
from math import inf
from time import monotonic

AWAKE = 0.0001  # seconds of polling after the last read


class BusyPoll:
    """Makes the loop poll without sleeping, until nothing was read for `AWAKE` seconds.

    `most`: requests under way of the connection that was read, with which the loop still polls.
    """

    __slots__ = ("_awake", "_loop", "_most", "_until")

    def __init__(self, most: float = inf) -> None:
        self._loop = asyncio.get_running_loop()
        self._most = most
        self._until = 0.0
        self._awake = False

    def prolong(self, now: float, under_way: int) -> None:
        """Poll from now on: a connection was read at time `now`, and so many of its requests are under way."""
        if under_way > self._most:
            return
        self._until = now + AWAKE
        if not self._awake:
            self._awake = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        # The loop does not sleep while a callback is due: each turn polls the sockets and calls this again.
        if monotonic() < self._until:
            self._loop.call_soon(self._turn)
        else:
            self._awake = False
