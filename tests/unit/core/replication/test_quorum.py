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


def test_a_broker_agrees_with_a_candidate_of_whom_it_has_heard_and_again_where_its_answer_was_lost() -> None:
    voter, position = Voter(3, 1), LogPosition(3, 10)
    assert voter.update_leader(2, 4, elected=False)
    assert not voter.vote(3, 4, position, position, unclean=False).granted
    assert not voter.vote(2, 4, LogPosition(3, 9), position, unclean=False).granted
    assert voter.vote(2, 4, position, position, unclean=False).granted
    assert voter.vote(2, 4, position, position, unclean=False).granted
    assert (voter.epoch, voter.leader) == (4, 2)
    assert not Voter(-1, 1).vote(1, -1, position, position, unclean=False).granted, "only a question who leads"


def test_nobody_is_elected_for_an_epoch_that_has_records() -> None:
    begun = LogPosition(4, 11)
    for unclean in (False, True):
        assert not Voter(4, 2).vote(2, 4, begun, begun, unclean=unclean).granted
        assert not Voter(4, 2).vote(2, 4, LogPosition(4, 12), begun, unclean=unclean).granted


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
    blank = Promise(True, 4, LogPosition(-1, 0), is_new=True)
    assert explain_defeat({1: blank, 3: Promise(True, 4, own)}, 3, own).startswith("broker 1 began with an empty")


def test_a_broker_that_lost_its_disk_does_not_make_a_majority() -> None:
    own, blank = LogPosition(3, 10), Promise(True, 4, LogPosition(-1, 0), is_new=True)
    whole = Promise(True, 4, own)
    assert not is_elected({1: blank, 3: whole}, 3, own)
    assert is_elected({1: blank, 3: whole}, 3, own, unclean=True)
    assert is_elected({1: blank, 2: whole, 3: whole}, 3, own)
    assert is_elected({1: blank, 3: blank}, 3, LogPosition(-1, 0)), "nobody has begun"
    assert is_elected({1: blank, 2: blank, 3: whole}, 3, own), "there is nobody else to know more"


@dataclass
class Member:
    """A broker with its copy of the log: the epoch of each record."""

    voter: Voter = field(default_factory=lambda: Voter(-1, -1))
    log: list[int] = field(default_factory=list)
    is_new: bool = True
    leading: QuorumProgress | None = None

    @property
    def position(self) -> LogPosition:
        return LogPosition(self.log[-1] if self.log else -1, len(self.log))


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["elect", "stand", "hear", "again", "append", "append", "copy", "copy", "copy", "restart", "lose"]
        ),
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
        if event in ("elect", "stand"):
            member.leading = None
            member.voter.update_leader(own, member.voter.epoch + 1, elected=False)
        if event == "elect" or (event == "again" and member.voter.leader == own and member.voter.epoch not in leaders):
            ask_for_votes(members, leaders, own, reached)
        elif event == "hear":
            hear(members, own, reached % size)
        elif event == "restart":
            member.leading = None
        elif event == "lose":
            # One disk at a time, of brokers that all had a copy. Nobody stands for an election just then.
            if size > 2 and not any(one.is_new for other, one in members.items() if other != own):
                members[own] = Member(member.voter)
        elif member.leading is not None and member.voter.epoch == member.leading.epoch:
            if event == "append":
                member.log.append(member.leading.epoch)
                member.leading.appended(len(member.log))
            else:
                copy(members, own, reached % size, short=reached // size % 2)
            high_watermark = member.leading.high_watermark
            assert (
                member.log[: len(committed)] == committed[:high_watermark] + member.log[high_watermark : len(committed)]
            )
            if high_watermark > len(committed):
                committed = member.log[:high_watermark]
        for other in members.values():
            if other.leading is not None and other.voter.epoch == max(leaders):
                assert other.log[: len(committed)] == committed, "who leads has all that counts"


def ask_for_votes(members: dict[int, Member], leaders: dict[int, int], own: int, reached: int) -> None:
    """A broker that stands for its epoch asks some of the others, perhaps not for the first time."""
    member, epoch = members[own], members[own].voter.epoch
    promises = {own: Promise(True, epoch, member.position, member.is_new)}
    for other, one in members.items():
        if other == own or not reached >> other & 1:
            continue
        answer = one.voter.vote(own, epoch, member.position, one.position, unclean=False)
        promises[other] = answer._replace(is_new=one.is_new)
        if answer.granted:
            one.leading = None
    if is_elected(promises, len(members), member.position):
        assert leaders.setdefault(epoch, own) == own
        member.is_new = False
        member.leading = QuorumProgress(own, epoch, members, len(member.log), 0)
    for other in promises:
        hear(members, other, own)


def hear(members: dict[int, Member], told: int, listener: int) -> None:
    """A broker says to another one whom it follows; who leads, or stands, hears nothing of itself."""
    voter, other = members[told].voter, members[listener]
    if voter.leader != listener and other.voter.update_leader(voter.leader, voter.epoch, elected=False):
        other.leading = None


def copy(members: dict[int, Member], own: int, other: int, short: int) -> None:
    """A follower takes over the leader's log, and says so; one that is new perhaps without its last record."""
    leader, follower = members[own], members[other]
    assert leader.leading is not None
    if follower is not leader and follower.voter.epoch <= leader.leading.epoch:
        follower.voter.update_leader(own, leader.leading.epoch, elected=True)
        follower.leading = None
        follower.log = leader.log[: len(leader.log) - (short if follower.is_new else 0)]
        high_watermark = leader.leading.high_watermark
        leader.leading.fetched(other, len(follower.log))
        if len(follower.log) >= high_watermark and follower.position.epoch == leader.leading.epoch:
            follower.is_new = False
