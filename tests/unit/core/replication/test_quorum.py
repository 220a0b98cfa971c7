"""The metadata log: an epoch has one leader, and whoever leads has all that most brokers had."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from korvet_fast.core.replication.quorum import LogPosition, Promise, Voter, explain_defeat, is_elected
from korvet_fast.core.replication.quorum_progress import QuorumProgress


def test_a_record_counts_on_more_than_half_of_the_brokers() -> None:
    progress = QuorumProgress(1, 3, (1, 2, 3), end=4, high_watermark=2)
    assert not progress.fetched(2, 4), "what former leaders wrote counts with a record of this one only"
    assert not progress.appended(6)
    assert progress.fetched(3, 5)
    assert progress.high_watermark == 5
    assert not progress.fetched(3, 1)
    assert progress.high_watermark == 5
    assert not progress.fetched(2, 9), "nobody has what the leader has not"
    assert not progress.fetched(7, 6), "a stranger"


def test_a_broker_agrees_to_an_epoch_once() -> None:
    voter, position = Voter(3, 1), LogPosition(3, 10)
    assert not voter.vote(2, 3, position, position, unclean=False).granted
    assert voter.vote(2, 4, position, position, unclean=False).granted
    assert not voter.vote(3, 4, position, position, unclean=False).granted
    assert not voter.update_leader(1, 3, elected=True), "an old leader"
    assert voter.update_leader(3, 5, elected=False)


def test_of_two_that_stand_for_an_epoch_the_elected_one_is_followed() -> None:
    voter = Voter(4, 2)
    assert not voter.update_leader(3, 4, elected=False)
    assert voter.leader == 2
    assert voter.update_leader(3, 4, elected=True)
    assert not voter.update_leader(3, 4, elected=True), "known already"
    assert voter.leader == 3


def test_a_broker_agrees_only_with_who_has_all_that_it_has() -> None:
    own = LogPosition(3, 10)
    for theirs, granted in ((LogPosition(2, 50), False), (LogPosition(3, 9), False), (LogPosition(4, 1), True)):
        assert Voter(4, 1).vote(2, 5, theirs, own, unclean=False).granted == granted
    assert Voter(4, 1).vote(2, 5, LogPosition(0, 0), own, unclean=True).granted


def test_a_defeat_says_what_to_do() -> None:
    own = LogPosition(3, 10)
    promises = {2: Promise(True, 4, own), 1: Promise(False, 4, LogPosition(3, 12))}
    assert explain_defeat(promises, 3, own).endswith("name broker 1")
    assert "1 of 3" in explain_defeat({2: Promise(True, 4, own)}, 3, own)


@dataclass
class Member:
    """A broker with its copy of the log: the epoch of each record."""

    voter: Voter = field(default_factory=lambda: Voter(-1, -1))
    log: list[int] = field(default_factory=list)
    leading: QuorumProgress | None = None

    @property
    def position(self) -> LogPosition:
        return LogPosition(self.log[-1] if self.log else -1, len(self.log))


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["elect", "append", "append", "copy", "copy", "copy", "restart"]),
        st.integers(0, 4),
        st.integers(0, 31),
    ),
    max_size=80,
)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.sampled_from([2, 3, 5]), EVENTS)
def test_what_most_brokers_had_is_never_lost(size: int, events: list[tuple[str, int, int]]) -> None:
    members = {number: Member() for number in range(size)}
    leaders: dict[int, int] = {}
    committed: list[int] = []
    for event, number, reached in events:
        own, member = number % size, members[number % size]
        if event == "elect":
            epoch = member.voter.epoch + 1
            there = {other for other in members if other == own or reached >> other & 1}
            promises = {
                other: members[other].voter.vote(own, epoch, member.position, members[other].position, unclean=False)
                for other in there
            }
            for other in there:
                if promises[other].granted:
                    members[other].leading = None
            if is_elected(promises, size):
                assert leaders.setdefault(epoch, own) == own
                member.leading = QuorumProgress(own, epoch, members, len(member.log), 0)
            member.voter.epoch = max(member.voter.epoch, *(one.epoch for one in promises.values()))
        elif event == "restart":
            member.leading = None
        elif member.leading is not None and member.voter.epoch == member.leading.epoch:
            if event == "append":
                member.log.append(member.leading.epoch)
                member.leading.appended(len(member.log))
            else:
                copy(members, own, reached % size)
            high_watermark = member.leading.high_watermark
            assert (
                member.log[: len(committed)] == committed[:high_watermark] + member.log[high_watermark : len(committed)]
            )
            if high_watermark > len(committed):
                committed = member.log[:high_watermark]
        for other in members.values():
            if other.leading is not None and other.voter.epoch == max(leaders):
                assert other.log[: len(committed)] == committed, "who leads has all that counts"


def copy(members: dict[int, Member], own: int, other: int) -> None:
    """A follower takes over the leader's log, and says so."""
    leader, follower = members[own], members[other]
    assert leader.leading is not None
    if follower is not leader and follower.voter.epoch <= leader.leading.epoch:
        follower.voter.update_leader(own, leader.leading.epoch, elected=True)
        follower.leading = None
        follower.log = list(leader.log)
        leader.leading.fetched(other, len(follower.log))
