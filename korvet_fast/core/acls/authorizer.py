"""Decides who may do what, and keeps what it decided for the principals that are connected."""

from typing import Final
from weakref import WeakValueDictionary

from korvet_fast.core.acls.binding import CLUSTER_NAME, Operation, ResourceType
from korvet_fast.core.acls.index import EVERYTHING, AclIndex, normalize_host

_MOST: Final = 200_000  # decisions kept for all principals together
_LONGEST: Final = 255  # characters of a name that a decision is kept for


class Permissions:
    """What one principal may do from one host. All of its connections have the same object.

    `known`: what was decided already, the operations by name for each type of resource.
    """

    __slots__ = ("__weakref__", "_authorizer", "_some", "host", "known", "principal")

    def __init__(self, authorizer: "Authorizer", principal: str, host: str) -> None:
        self.principal = principal
        self.host = host
        self._authorizer = authorizer
        self.known: list[dict[str, int]] = [{} for _ in range(max(ResourceType) + 1)]  # operations, by name
        self._some: dict[tuple[int, int], bool] = {}

    def allows(self, operation: Operation, resource: ResourceType, name: str) -> bool:
        """Whether the principal may do this to the resource of this name."""
        found = self.known[resource].get(name)
        if found is None:
            found = self._decide(resource, name)
        return found >> operation & 1 == 1

    def allows_by_cluster(self, operation: Operation, resource: ResourceType, name: str) -> bool:
        """The same, where the operation on the cluster is for every resource: CREATE and DELETE of topics."""
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME) or self.allows(operation, resource, name)

    def operations(self, resource: ResourceType, name: str) -> int:
        """All operations that the principal may do to the resource, as bits (KIP-430)."""
        found = self.known[resource].get(name)
        return self._decide(resource, name) if found is None else found

    def allows_some(self, operation: Operation, resource: ResourceType) -> bool:
        """Whether the principal may do this to some resource of the type (see `AclIndex.allows_some`)."""
        key = operation, resource
        if key not in self._some:
            self._some[key] = self._authorizer.decide_some(self.principal, self.host, operation, resource)
        return self._some[key]

    def forget(self) -> None:
        """Decide anew from now on: the bindings have changed."""
        for known in self.known:
            known.clear()
        self._some.clear()

    def _decide(self, resource: ResourceType, name: str) -> int:
        found = self._authorizer.decide(self.principal, self.host, resource, name)
        if len(name) <= _LONGEST:
            self._authorizer.count_decision()
            self.known[resource][name] = found
        return found


class Authorizer:
    """Kafka's StandardAuthorizer: who is no super user may do what a binding allows and none denies.

    `is_ready`: the bindings have been read. Before, only super users may do anything. `everyone`: what no binding is
    about is everybody's (allow.everyone.if.no.acl.found). `version` is another number after each change.
    """

    def __init__(self, super_users: frozenset[str] = frozenset(), *, everyone: bool = False) -> None:
        self.index = AclIndex()
        self.is_ready = False
        self.version = 0
        self._super_users = super_users
        self._everyone = everyone
        self._permissions: WeakValueDictionary[tuple[str, str], Permissions] = WeakValueDictionary()
        self._decisions = 0

    def find_permissions(self, principal: str, host: str) -> Permissions:
        """The permissions of a principal from an address, which whoever asks for them holds while they are needed."""
        key = principal, normalize_host(host)
        found = self._permissions.get(key)
        if found is None:
            found = self._permissions[key] = Permissions(self, *key)
        return found

    def note_change(self, *, ready: bool = True) -> None:
        """The bindings in `index` have changed; or, if not `ready`, they are not known any more."""
        self.is_ready = ready
        self.version += 1
        self._forget()

    def decide(self, principal: str, host: str, resource: ResourceType, name: str) -> int:
        """The operations that are allowed, as bits."""
        if principal in self._super_users:
            return EVERYTHING
        if not self.is_ready:
            return 0
        found = self.index.find_operations(principal, host, resource, name)
        if found is None:
            return EVERYTHING if self._everyone else 0
        return found

    def decide_some(self, principal: str, host: str, operation: Operation, resource: ResourceType) -> bool:
        """See `Permissions.allows_some`."""
        # Kafka asks for a name that nobody has first, for super users, and for allow.everyone.if.no.acl.found.
        if self.decide(principal, host, resource, "hardcode") >> operation & 1:
            return True
        return self.is_ready and self.index.allows_some(principal, host, operation, resource)

    def count_decision(self) -> None:
        """One more decision is kept."""
        self._decisions += 1
        if self._decisions > _MOST:
            self._forget()

    def _forget(self) -> None:
        self._decisions = 0
        for permissions in list(self._permissions.values()):
            permissions.forget()


def read_super_users(text: str) -> frozenset[str]:
    """The principals of `super.users`: `User:admin;User:CN=ops,O=example`, as in Kafka, whose names may have commas."""
    return frozenset(name.strip() for name in text.split(";") if name.strip())
