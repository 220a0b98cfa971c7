"""The authorizer against a model that looks at every binding; Kafka's rules one by one."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.core.acls import authorizer as authorizer_module
from korvet_fast.core.acls.authorizer import Authorizer, read_super_users
from korvet_fast.core.acls.binding import AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType
from korvet_fast.core.acls.index import normalize_host
from twin.profile import examples

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE, ALL, DESCRIBE = Operation.READ, Operation.WRITE, Operation.ALL, Operation.DESCRIBE
ALLOW, DENY = Permission.ALLOW, Permission.DENY

_NAMES = st.text("ab*", min_size=1, max_size=3)
_PRINCIPALS = st.sampled_from(["User:ann", "User:bob", "User:*"])
_HOSTS = st.sampled_from(["10.0.0.1", "::1", "0:0:0:0:0:0:0:1", "*"])
_OPERATIONS = st.sampled_from([one for one in Operation if one is not Operation.ANY])
_BINDINGS = st.builds(
    AclBinding,
    st.sampled_from([TOPIC, GROUP]),
    _NAMES,
    st.sampled_from([LITERAL, PREFIXED]),
    _PRINCIPALS,
    _HOSTS,
    _OPERATIONS,
    st.sampled_from([ALLOW, DENY]),
)

IMPLIES_DESCRIBE = (READ, WRITE, Operation.DELETE, Operation.ALTER, DESCRIBE)
IMPLIES_DESCRIBE_CONFIGS = (Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS)


def make(*bindings: AclBinding, everyone: bool = False, super_users: str = "") -> Authorizer:
    authorizer = Authorizer(read_super_users(super_users), everyone=everyone)
    for binding in bindings:
        authorizer.index.add(binding)
    authorizer.note_change()
    return authorizer


def topic(
    operation: Operation,
    permission: Permission = ALLOW,
    name: str = "orders",
    pattern: PatternType = LITERAL,
    principal: str = "User:ann",
    host: str = "*",
) -> AclBinding:
    return AclBinding(TOPIC, name, pattern, principal, host, operation, permission)


def about(binding: AclBinding, resource: ResourceType, name: str) -> bool:
    """Whether a binding is about a resource: the rule as Kafka's documentation words it."""
    if binding.resource is not resource:
        return False
    if binding.pattern is PREFIXED:
        return name.startswith(binding.name)
    return binding.name in (name, "*")


def model(
    bindings: set[AclBinding],
    principal: str,
    host: str,
    operation: Operation,
    resource: ResourceType,
    name: str,
    everyone: bool,
) -> bool:
    """All bindings, one after the other."""
    concerned = [binding for binding in bindings if about(binding, resource, name)]
    if not concerned:
        return everyone
    matching = [
        binding
        for binding in concerned
        if binding.principal in (principal, "User:*")
        and (binding.host == "*" or normalize_host(binding.host) == normalize_host(host))
    ]
    if any(binding.permission is DENY and binding.operation in (operation, ALL) for binding in matching):
        return False
    implied = {DESCRIBE: IMPLIES_DESCRIBE, Operation.DESCRIBE_CONFIGS: IMPLIES_DESCRIBE_CONFIGS}
    good = (*implied.get(operation, (operation,)), ALL)
    return any(binding.permission is ALLOW and binding.operation in good for binding in matching)


@examples(100)
@given(
    st.lists(st.tuples(st.booleans(), _BINDINGS), max_size=25),
    st.lists(st.tuples(_PRINCIPALS, st.sampled_from(["10.0.0.1", "::1", "10.0.0.2"]), _NAMES), min_size=1, max_size=6),
    st.booleans(),
)
def test_the_index_decides_as_a_model_that_looks_at_all_bindings(
    changes: list[tuple[bool, AclBinding]], asked: list[tuple[str, str, str]], everyone: bool
) -> None:
    """Also what was decided, and kept, before the last change."""
    present: set[AclBinding] = set()
    authorizer = make(everyone=everyone)
    for adds, binding in changes:
        for principal, host, name in asked[:2]:
            authorizer.find_permissions(principal, host).allows(READ, TOPIC, name)
        if adds:
            present.add(binding)
            authorizer.index.add(binding)
        else:
            present.discard(binding)
            authorizer.index.remove(binding)
        authorizer.note_change()
    assert set(authorizer.index) == present
    for principal, host, name in asked:
        permissions = authorizer.find_permissions(principal, host)
        for operation in Operation:
            if operation in (Operation.ANY, ALL):
                continue
            wanted = model(present, principal, host, operation, TOPIC, name, everyone)
            assert permissions.allows(operation, TOPIC, name) == wanted
            assert permissions.allows(operation, TOPIC, name) == wanted  # as it is kept
            assert bool(permissions.operations(TOPIC, name) >> operation & 1) == wanted


@examples(100)
@given(st.sets(_BINDINGS, max_size=12))
def test_whoever_may_write_to_some_topic_may_write_somewhere(bindings: set[AclBinding]) -> None:
    """`allows_some` says no only where no name can be found that is allowed."""
    authorizer = make(*bindings)
    permissions = authorizer.find_permissions("User:ann", "10.0.0.1")
    names = {binding.name + tail for binding in bindings for tail in ("", "a", "b", "z")} | {"hardcode"}
    if any(permissions.allows(WRITE, TOPIC, name) for name in names - {"*"}):
        assert permissions.allows_some(WRITE, TOPIC)


def test_a_deny_wins_over_every_allow() -> None:
    authorizer = make(
        topic(ALL),
        topic(READ, DENY, "ord", PREFIXED, "User:*"),
        topic(READ, ALLOW, "*", LITERAL),
        super_users="User:root",
    )
    assert not authorizer.find_permissions("User:ann", "10.0.0.1").allows(READ, TOPIC, "orders")
    assert authorizer.find_permissions("User:ann", "10.0.0.1").allows(WRITE, TOPIC, "orders")
    assert authorizer.find_permissions("User:root", "10.0.0.1").allows(READ, TOPIC, "orders")


def test_a_deny_implies_nothing() -> None:
    authorizer = make(topic(READ, DENY), topic(DESCRIBE))
    permissions = authorizer.find_permissions("User:ann", "10.0.0.1")
    assert permissions.allows(DESCRIBE, TOPIC, "orders")
    assert not permissions.allows(READ, TOPIC, "orders")


def test_until_the_bindings_are_read_only_super_users_may_do_anything() -> None:
    authorizer = Authorizer(read_super_users("User:root"), everyone=True)
    authorizer.index.add(topic(ALL))
    for operation in (READ, WRITE):
        assert not authorizer.find_permissions("User:ann", "::1").allows(operation, TOPIC, "orders")
        assert not authorizer.find_permissions("User:ann", "::1").allows_some(operation, TOPIC)
        assert authorizer.find_permissions("User:root", "::1").allows(operation, TOPIC, "orders")
    permissions = authorizer.find_permissions("User:ann", "::1")
    authorizer.note_change()
    assert permissions.allows(READ, TOPIC, "orders")
    authorizer.note_change(ready=False)
    assert not permissions.allows(READ, TOPIC, "orders")


def test_super_users_are_exact_names_with_semicolons_between() -> None:
    assert read_super_users(" User:admin;User:CN=ops,O=example ; ") == {"User:admin", "User:CN=ops,O=example"}


def test_an_address_is_known_in_every_spelling() -> None:
    authorizer = make(topic(READ, host="0:0:0:0:0:0:0:1"), topic(WRITE, host="10.0.0.1"))
    assert authorizer.find_permissions("User:ann", "::1").allows(READ, TOPIC, "orders")
    assert authorizer.find_permissions("User:ann", "::ffff:10.0.0.1").allows(WRITE, TOPIC, "orders")
    assert not authorizer.find_permissions("User:ann", "10.0.0.1").allows(READ, TOPIC, "orders")


def test_kept_decisions_are_bounded_whatever_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorizer_module, "_MOST", 1000)
    authorizer = make(topic(READ, ALLOW, "t", PREFIXED))
    permissions = authorizer.find_permissions("User:ann", "::1")
    for number in range(1010):
        permissions.allows(READ, TOPIC, f"t{number}")
    assert len(permissions.known[TOPIC]) <= 10
    permissions.allows(READ, TOPIC, "x" * 30_000)
    assert max(map(len, permissions.known[TOPIC])) <= 255


def test_among_ten_thousand_bindings_few_are_looked_at() -> None:
    """Counted, not timed: of all bindings, only those of the resource and the principal."""
    letters = string.ascii_lowercase
    many = [topic(READ, ALLOW, f"{a}{b}{c}", PREFIXED, f"User:{a}") for a in letters for b in letters for c in letters]
    authorizer = make(
        *many[:9000], *(topic(READ, ALLOW, "orders", LITERAL, f"User:{n}") for n in range(1000)), topic(READ)
    )
    found = list(authorizer.index._find_patterns(TOPIC, "orders"))
    assert len(found) <= 2
    assert sum(len(rows.get("User:ann", ())) for rows in found) == 1
    assert authorizer.find_permissions("User:ann", "::1").allows(READ, TOPIC, "orders")


@examples(100)
@given(st.lists(_BINDINGS, max_size=10), _NAMES, st.sampled_from([*PatternType]))
def test_a_filter_chooses_as_kafkas(bindings: list[AclBinding], name: str, pattern: PatternType) -> None:
    chosen = [binding for binding in bindings if AclFilter(TOPIC, name, pattern).matches(binding)]
    if pattern is PatternType.MATCH:
        assert chosen == [binding for binding in bindings if about(binding, TOPIC, name)]
    else:
        kinds = (LITERAL, PREFIXED) if pattern is PatternType.ANY else (pattern,)
        wanted = [one for one in bindings if one.resource is TOPIC and one.name == name and one.pattern in kinds]
        assert chosen == wanted
    assert [one for one in bindings if AclFilter().matches(one)] == bindings
