"""A line of those who wait: the addresses that clients come from take turns, then the connections of one address.

With one line for all connections, one that was opened behind 3,000 of a stranger waited for each of them.
"""

from collections import OrderedDict, deque
from typing import Generic, TypeVar

W = TypeVar("W")


class AddressLine(Generic[W]):
    """Those of one address keep their order."""

    __slots__ = ("_addresses",)

    def __init__(self) -> None:
        self._addresses: OrderedDict[object, deque[W]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._addresses)

    def append(self, address: object, waiter: W) -> None:
        """Put somebody at the end of an address's line; an address that has nobody waiting goes behind the others."""
        waiters = self._addresses.get(address)
        if waiters is None:
            self._addresses[address] = deque((waiter,))
        else:
            waiters.append(waiter)

    def popleft(self) -> W:
        """Remove the first of the address whose turn it is, which goes behind the others."""
        return self.pop(next(iter(self._addresses)))

    def pop(self, address: object) -> W:
        """Remove the first of this address, which goes behind the others."""
        waiters = self._addresses[address]
        waiter = waiters.popleft()
        if waiters:
            self._addresses.move_to_end(address)
        else:
            del self._addresses[address]
        return waiter
