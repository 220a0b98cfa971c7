"""Addresses take turns in a line, and those of one keep their order."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.core.address_line import AddressLine

_ADDRESSES = "abcd"


@given(st.lists(st.sampled_from((*_ADDRESSES, None))))
def test_nobody_is_lost_and_no_address_goes_twice_before_another_that_waits(steps: list[str | None]) -> None:
    """`steps`: an address gets one more that waits; None: the next one goes."""
    line: AddressLine[tuple[str, int]] = AddressLine()
    waiting: dict[str, list[int]] = defaultdict(list)
    passed: dict[str, set[str]] = {}  # by address that waits: those that went meanwhile
    for number, step in enumerate((*steps, *[None] * len(steps))):
        assert bool(line) == any(waiting.values())
        if step is not None:
            line.append(step, (step, number))
            waiting[step].append(number)
            passed.setdefault(step, set())
        elif line:
            address, found = line.popleft()
            assert found == waiting[address].pop(0)
            del passed[address]
            for others in passed.values():
                assert address not in others
                others.add(address)
            if waiting[address]:
                passed[address] = set()
    assert not line
    assert not any(waiting.values())


def test_one_of_another_address_goes_second_however_many_one_address_has() -> None:
    line: AddressLine[str] = AddressLine()
    for _ in range(3000):
        line.append("there", "many")
    line.append("here", "one")
    assert [line.popleft() for _ in range(3)] == ["many", "one", "many"]
