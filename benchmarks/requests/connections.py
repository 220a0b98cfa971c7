"""The connections that requests are measured on: each request on a plain one, some behind ACLs and inside TLS."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple

from benchmarks.requests.cases import Case, prepare
from benchmarks.requests.wire import Wire, open_wire
from korvet_fast.core.acls.binding import (
    EVERYBODY,
    WILDCARD,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

BINDINGS: Final = 10_000  # of a cluster whose ACLs are measured
ACLS: Final = ", 10,000 ACLs"  # behind the name of a request on the plain connection
TLS: Final = ", TLS"
_USED: Final = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)


def make_bindings() -> list[AclBinding]:
    """Those by which everybody may do everything here, and those of as many other principals, half of them prefixed."""
    anybody = [
        AclBinding(kind, WILDCARD, PatternType.LITERAL, EVERYBODY, WILDCARD, Operation.ALL, Permission.ALLOW)
        for kind in _USED
    ]
    patterns = (PatternType.LITERAL, PatternType.PREFIXED)
    return anybody + [
        AclBinding(
            ResourceType.TOPIC,
            f"orders-{number}",
            patterns[number % 2],
            f"User:app-{number}",
            WILDCARD,
            Operation.READ,
            Permission.ALLOW,
        )
        for number in range(BINDINGS - len(anybody))
    ]


class Connected(NamedTuple):
    """A connection, and the cases that are measured on it: all, or those `of` these names with a `suffix` to them."""

    opened: Callable[[], AbstractAsyncContextManager[Wire]]
    of: tuple[str, ...] = ()
    suffix: str = ""

    def has(self, words: Sequence[str]) -> bool:
        """Whether one of the cases may be called so; the plain connection's are known once it is open."""
        names = [name + self.suffix for name in self.of]
        return not (names and words) or any(word.lower() in name.lower() for word in words for name in names)

    async def prepare(self, wire: Wire, words: Sequence[str] = ()) -> list[Case]:
        """The cases whose names hold one of the words (none: all). Raises `BrokerError`."""
        cases = await prepare(wire)
        if self.of:  # budgets are the plain connection's
            cases = [case._replace(name=case.name + self.suffix, budget=None) for case in cases if case.name in self.of]
        return [case for case in cases if not words or any(word.lower() in case.name.lower() for word in words)]


# One is open at a time: what another one keeps in memory would move where buffers lie, and with that some counts.
CONNECTIONS: Final = (
    Connected(open_wire),
    Connected(lambda: open_wire("authorizer=acl", bindings=make_bindings()), ("Produce 16 KB", "Fetch 64 KB"), ACLS),
    Connected(lambda: open_wire(encrypted=True), ("Produce 16 KB", "Produce 64 KB", "Fetch 64 KB"), TLS),
)
