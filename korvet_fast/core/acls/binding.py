"""ACLs as Kafka writes them: a binding allows or denies one operation on some resources to one principal of one host.

The numbers are those of Kafka's protocol: AclOperation, ResourceType, PatternType, AclPermissionType (KIP-140, 290).
"""

from enum import IntEnum
from typing import Final, NamedTuple

from korvet_fast.errors import Errors, KorvetError

WILDCARD: Final = "*"  # a resource's name, or a host: every one of them
EVERYBODY: Final = "User:*"
ANONYMOUS: Final = "User:ANONYMOUS"  # who has shown neither a certificate nor a password
CLUSTER_NAME: Final = "kafka-cluster"  # the one resource of the type CLUSTER
_LONGEST: Final = {"name": 512, "principal": 4200, "host": 64}  # characters


class ResourceType(IntEnum):
    """`ANY` is for filters only."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    """`ANY` is for filters only. `ALL` stands for every other one."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PatternType(IntEnum):
    """`ANY` and `MATCH` are for filters only."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """`ANY` is for filters only."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class AclBinding(NamedTuple):
    """One ACL."""

    resource: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        star = "*" if self.pattern is PatternType.PREFIXED else ""
        place = "" if self.host == WILDCARD else f" from {self.host}"
        what = f"{self.operation.name} on {self.resource.name} {self.name}{star}"
        return f"{self.permission.name} {self.principal}{place} {what}"

    def check(self) -> None:
        """Raises `KorvetError` INVALID_REQUEST for a binding that cannot be kept, as Kafka does."""
        if ResourceType.ANY is self.resource or Operation.ANY is self.operation or Permission.ANY is self.permission:
            raise _refuse("an ACL names one type of resource, one operation and one permission, not ANY")
        if self.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
            raise _refuse("the pattern type of an ACL is LITERAL or PREFIXED")
        if self.resource is ResourceType.CLUSTER and self.name != CLUSTER_NAME:
            raise _refuse(f"the only resource of type CLUSTER is {CLUSTER_NAME}")
        if ":" not in self.principal:
            raise _refuse("a principal is written as TYPE:NAME, such as User:ann")
        for field, most in _LONGEST.items():
            if not 0 < len(getattr(self, field)) <= most:
                raise _refuse(f"the {field} of an ACL has 1 to {most} characters")


class AclFilter(NamedTuple):
    """Chooses ACLs. None, and `ANY`, choose all; the pattern `MATCH` chooses what applies to the resource `name`."""

    resource: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, binding: AclBinding) -> bool:
        """Whether this binding is chosen (ResourcePatternFilter.java, AccessControlEntryFilter.java)."""
        return (
            self.resource in (ResourceType.ANY, binding.resource)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (Operation.ANY, binding.operation)
            and self.permission in (Permission.ANY, binding.permission)
            and self._matches_name(binding)
        )

    def _matches_name(self, binding: AclBinding) -> bool:
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, binding.pattern):
            return False
        if self.name is None or self.name == binding.name:
            return True
        if self.pattern is not PatternType.MATCH:
            return False
        if binding.pattern is PatternType.PREFIXED:
            return self.name.startswith(binding.name)
        return binding.name == WILDCARD


def _refuse(why: str) -> KorvetError:
    return KorvetError(Errors.INVALID_REQUEST, why)
