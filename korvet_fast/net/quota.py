"""Quotas of connections: in all, and per address. A silent or an idle connection makes room for a new one."""

from collections import Counter, OrderedDict
from ipaddress import IPv6Address, ip_address
from typing import Generic, TypeVar

C = TypeVar("C")

MOST_ADDRESSES = 1024  # whose rates are known
_SUBNET = 64  # bits of an IPv6 address that its owner cannot choose
_SHARES = 10  # an address may make this part of the new connections while others would wait


def find_address(ip: str) -> str:
    """The address that the connections of `ip` are counted for: an IPv4 address, or an IPv6 network of /64."""
    try:
        address = ip_address(ip)
    except ValueError:
        return ip
    if not isinstance(address, IPv6Address):
        return ip
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> _SUBNET << _SUBNET)}/{_SUBNET}"


class ConnectionRateLimiter:
    """Limits new connections to `rate` a second; the connections of one second may come all at once."""

    def __init__(self, rate: int) -> None:
        self._step = 1.0 / rate
        self._next = 0.0  # from when on the rate allows another connection

    def find_wait(self, now: float) -> float:
        """Seconds that a connection made at time `now` would have to wait; zero or less: it need not wait."""
        return max(self._next, now - 1.0) - now

    def enter(self, now: float) -> float:
        """Count a connection made at time `now`; the seconds that it has to wait."""
        wait = self.find_wait(now)
        self._next = now + wait + self._step
        return wait


class ConnectionRate:
    """Limits new connections to `rate` a second in all. Where that is reached, an address that has had its share waits
    aside, and keeps no other waiting.
    """

    def __init__(self, rate: int) -> None:
        self.limit = rate
        self.of: OrderedDict[str, ConnectionRateLimiter] = OrderedDict()  # by address; lately seen ones come last
        self.all = ConnectionRateLimiter(rate)
        self._share = max(1, rate // _SHARES)

    def enter(self, address: str, now: float) -> float | None:
        """Seconds that a connection made at time `now` has to wait; None: aside, until `all` has room."""
        own = self.of.setdefault(address, ConnectionRateLimiter(self._share))
        self.of.move_to_end(address)
        if len(self.of) > MOST_ADDRESSES:
            self.of.popitem(last=False)
        if own.find_wait(now) <= 0:
            own.enter(now)
        elif self.all.find_wait(now) > 0:
            return None
        return self.all.enter(now)


class ConnectionQuota(Generic[C]):
    """Counts connections by address, and knows which of them have sent no request yet."""

    def __init__(self, connections: int, per_address: int, why_full: str = "") -> None:
        """`why_full`: why there are no more than `connections`, if that is not the setting."""
        self._connections = connections
        self.why_full = why_full or f"max.connections={connections} is reached"
        self._per_address = per_address
        self._all = 0
        self._of: Counter[str] = Counter()
        self._silent: dict[str, OrderedDict[C, None]] = {}
        self._by_count: dict[int, OrderedDict[str, None]] = {}  # addresses by the number of their silent ones
        self._most = 0

    def add(self, address: str) -> None:
        """Count one more connection."""
        self._all += 1
        self._of[address] += 1

    def remove(self, connection: C, address: str) -> None:
        """Count one connection less."""
        self.greet(connection, address)
        self._all -= 1
        self._of[address] -= 1
        if not self._of[address]:
            del self._of[address]

    def watch(self, connection: C, address: str) -> None:
        """Note that the connection is open, and has sent no request yet."""
        silent = self._silent.setdefault(address, OrderedDict())
        silent[connection] = None
        self._move(address, len(silent) - 1, len(silent))

    def greet(self, connection: C, address: str) -> None:
        """Note that the connection has sent a request."""
        silent = self._silent.get(address)
        if silent is None or connection not in silent:
            return
        del silent[connection]
        self._move(address, len(silent) + 1, len(silent))
        if not silent:
            del self._silent[address]

    def refusal(self, address: str) -> tuple[str, C | None] | None:
        """Why this address may not have another connection, and a silent one that can make room; None: it may."""
        if self._of[address] >= self._per_address:
            return f"max.connections.per.ip={self._per_address} is reached", self._oldest(address)
        if self._all >= self._connections:
            most = next(iter(self._by_count[self._most])) if self._most else ""
            return self.why_full, self._oldest(most)
        return None

    def find_largest(self, address: str) -> str | None:
        """The address with most connections, if this one may have another, and has fewer even then; else None."""
        if self._of[address] >= self._per_address or not self._of:
            return None
        largest, count = max(self._of.items(), key=lambda row: row[1])
        return largest if self._of[address] + 1 < count else None

    def _oldest(self, address: str) -> C | None:
        return next(iter(self._silent.get(address, ())), None)

    def _move(self, address: str, before: int, now: int) -> None:
        if before:
            del self._by_count[before][address]
            if not self._by_count[before]:
                del self._by_count[before]
        if now:
            self._by_count.setdefault(now, OrderedDict())[address] = None
        if now > self._most or (self._most and self._most not in self._by_count):
            self._most = now
