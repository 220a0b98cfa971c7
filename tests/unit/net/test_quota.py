"""Who counts as one address, and which silent connection makes room."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korvet_fast.net.quota import ConnectionQuota, find_address


@pytest.mark.parametrize(
    ("ip", "address"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb:1:2:3", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_finding_4_3_ipv6_is_counted_by_network(ip: str, address: str) -> None:
    assert find_address(ip) == address


def test_the_oldest_silent_one_of_the_address_that_has_most_makes_room() -> None:
    quota: ConnectionQuota[str] = ConnectionQuota(5, 10)
    for name in ("a1", "b1", "b2", "b3", "c1"):
        quota.add(name[0])
        quota.watch(name, name[0])
    assert quota.refusal("d") == ("max.connections=5 is reached", "b1")
    quota.greet("b1", "b")
    assert quota.refusal("d") == ("max.connections=5 is reached", "b2")
    for name in ("b2", "b3", "a1", "c1"):
        quota.greet(name, name[0])
    assert quota.refusal("d") == ("max.connections=5 is reached", None)  # never one that has spoken
    quota.remove("c1", "c")
    assert quota.refusal("d") is None


def test_an_address_at_its_limit_makes_room_itself() -> None:
    quota: ConnectionQuota[str] = ConnectionQuota(100, 2)
    for name in ("a1", "a2", "b1"):
        quota.add(name[0])
        quota.watch(name, name[0])
    quota.greet("a1", "a")
    assert quota.refusal("a") == ("max.connections.per.ip=2 is reached", "a2")
    assert quota.refusal("b") is None


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("wgr"), st.integers(0, 9)), max_size=60))
def test_the_most_silent_address_is_always_known(steps: list[tuple[str, str, int]]) -> None:
    quota: ConnectionQuota[str] = ConnectionQuota(0, 1000)
    open_: dict[str, str] = {}
    silent: list[str] = []
    for address, what, number in steps:
        name = f"{address}{number}"
        if what == "w" and name not in open_:
            quota.add(address)
            quota.watch(name, address)
            open_[name] = address
            silent.append(name)
        elif what == "g" and name in open_:
            quota.greet(name, address)
            silent = [one for one in silent if one != name]
        elif what == "r" and open_.pop(name, None):
            quota.remove(name, address)
            silent = [one for one in silent if one != name]
        refusal = quota.refusal("x")
        assert refusal is not None
        counted = Counter(one[0] for one in silent)
        if counted:
            assert refusal[1] is not None
            assert counted[refusal[1][0]] == max(counted.values())
            assert refusal[1] == next(one for one in silent if one[0] == refusal[1][0])
        else:
            assert refusal[1] is None
