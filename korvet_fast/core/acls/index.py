"""The bindings, so that those of one resource and one principal are found without looking at all others.

A resource is looked up by its name, by the wildcard, and by each length that a prefix of its type has. In what is
found, a principal is looked up by its name and by `User:*`. The rules are those of StandardAuthorizerData.java.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Final, TypeAlias

from korvet_fast.core.acls.binding import (
    EVERYBODY,
    WILDCARD,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

EVERYTHING: Final = -1  # the bits of all operations
_LITERAL, _PREFIXED = PatternType.LITERAL, PatternType.PREFIXED

_ByPrincipal: TypeAlias = dict[str, list[AclBinding]]


def _bit(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


# What an ALLOW gives besides its own operation. A DENY takes its own only.
_IMPLIED: Final[Mapping[Operation, int]] = {
    Operation.READ: _bit(Operation.DESCRIBE),
    Operation.WRITE: _bit(Operation.DESCRIBE),
    Operation.DELETE: _bit(Operation.DESCRIBE),
    Operation.ALTER: _bit(Operation.DESCRIBE),
    Operation.ALTER_CONFIGS: _bit(Operation.DESCRIBE_CONFIGS),
}


def normalize_host(host: str) -> str:
    """An address in one spelling: IPv6 as the shortest, IPv4 inside of it as itself. Other text stays as it is."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    inner = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(inner or address)


class AclIndex:
    """All bindings. Operations are bits of a number, by Kafka's numbers: 1 << Operation.READ."""

    def __init__(self) -> None:
        self._bindings: dict[AclBinding, None] = {}
        self._patterns: dict[tuple[int, int, str], _ByPrincipal] = {}
        self._lengths: defaultdict[int, Counter[int]] = defaultdict(Counter)  # of prefixes, by the type of resource

    def __len__(self) -> int:
        return len(self._bindings)

    def __iter__(self) -> Iterator[AclBinding]:
        return iter(self._bindings)

    def __contains__(self, binding: object) -> bool:
        return binding in self._bindings

    def add(self, binding: AclBinding) -> None:
        """Add a binding; one that is there already changes nothing."""
        if binding in self._bindings:
            return
        self._bindings[binding] = None
        key = binding.resource, binding.pattern, binding.name
        found = self._patterns.get(key)
        if found is None:
            found = self._patterns[key] = {}
            if binding.pattern is _PREFIXED:
                self._lengths[binding.resource][len(binding.name)] += 1
        found.setdefault(binding.principal, []).append(binding)

    def remove(self, binding: AclBinding) -> None:
        """Remove a binding, if it is there."""
        if binding not in self._bindings:
            return
        del self._bindings[binding]
        key = binding.resource, binding.pattern, binding.name
        found = self._patterns[key]
        rows = found[binding.principal]
        rows.remove(binding)
        if rows:
            return
        del found[binding.principal]
        if not found:
            del self._patterns[key]
            if binding.pattern is _PREFIXED:
                lengths = self._lengths[binding.resource]
                lengths[len(binding.name)] -= 1
                lengths += Counter()  # drops those that are 0

    def find_operations(self, principal: str, host: str, resource: ResourceType, name: str) -> int | None:
        """The operations that a principal may do to a resource, as bits; None if no binding is about this resource."""
        patterns = list(self._find_patterns(resource, name))
        if not patterns:
            return None
        allowed = denied = 0
        for found in patterns:
            for binding in _of_principal(found, principal, host):
                if binding.permission is Permission.DENY:
                    denied |= _own(binding)
                else:
                    allowed |= _own(binding) | _IMPLIED.get(binding.operation, 0)
        return allowed & ~denied

    def allows_some(self, principal: str, host: str, operation: Operation, resource: ResourceType) -> bool:
        """Whether there may be a resource of this type that the principal may do `operation` to.

        The rules are those of Authorizer.authorizeByResourceType (KIP-679): an ALLOW counts unless a DENY covers all of
        it.
        """
        allowed: list[AclBinding] = []
        denied: set[tuple[int, str]] = set()
        for (kind, pattern, name), found in self._patterns.items():
            if kind != resource:
                continue
            for binding in _of_principal(found, principal, host):
                if binding.operation not in (operation, Operation.ALL):
                    continue
                if binding.permission is Permission.DENY:
                    denied.add((pattern, name))
                else:
                    allowed.append(binding)
        if (_LITERAL, WILDCARD) in denied:
            return False
        return any(not _is_covered(binding, denied) for binding in allowed)

    def _find_patterns(self, resource: ResourceType, name: str) -> Iterator[_ByPrincipal]:
        patterns = self._patterns
        keys = [(resource, _LITERAL, name), (resource, _LITERAL, WILDCARD)]
        keys += [(resource, _PREFIXED, name[:length]) for length in self._lengths[resource] if length <= len(name)]
        for key in keys if name != WILDCARD else keys[1:]:
            if (found := patterns.get(key)) is not None:
                yield found


def _own(binding: AclBinding) -> int:
    return EVERYTHING if binding.operation is Operation.ALL else 1 << binding.operation


def _of_principal(found: _ByPrincipal, principal: str, host: str) -> Iterator[AclBinding]:
    """The bindings of a principal from a host; `host` is normal."""
    for who in (principal, EVERYBODY) if principal != EVERYBODY else (EVERYBODY,):
        for binding in found.get(who, ()):
            if binding.host == WILDCARD or normalize_host(binding.host) == host:
                yield binding


def _is_covered(binding: AclBinding, denied: set[tuple[int, str]]) -> bool:
    """Whether all that a binding allows is denied."""
    name = binding.name
    if binding.pattern is _LITERAL:
        if name == WILDCARD:
            return False
        if (_LITERAL, name) in denied:
            return True
    return any((_PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
