"""A follower truncates by epochs: the cases of KIP-101 and KIP-279 by name, and answers nobody waits for."""

from korvet_fast.core.partition.leader_epochs import LeaderEpochCache
from korvet_fast.core.replication.follower import FollowerState
from replication_world import World


def follow(entries: list[tuple[int, int]], end: int, epoch: int, watermark: int = 0) -> FollowerState:
    state = FollowerState(LeaderEpochCache(entries), end, watermark)
    assert state.follow_leader(2, epoch)
    return state


def test_kip_101_a_restart_does_not_truncate_to_the_watermark() -> None:
    """Scenario 1: the follower has a record whose watermark it has not heard of; then the leader dies."""
    world = World(2, 1)
    world.settle(4)
    first, second = world.brokers[1], world.brokers[2]
    assert first.leading is not None
    first.produce(7)
    first.flush()
    for _ in range(2):  # it fetches the record, and the leader learns that it has it
        second.fetch()
        world.network.deliver(0)
        if not world.acknowledged:
            world.network.deliver(0)
    assert list(world.acknowledged) == [0]
    assert second.watermark == 0
    world.crash(2)
    second.restart()
    second.ask_registry()
    world.network.drop(0)  # what the leader told it, before the crash
    for _ in range(2):
        world.network.deliver(0)
    second.fetch()
    for _ in range(2):
        world.network.deliver(0)
    assert len(second.log) == 1
    world.crash(1)
    world.move(2)
    world.settle()
    assert second.leading is not None
    assert world.acknowledged[0] in second.log


def test_kip_101_logs_do_not_diverge_after_a_power_failure() -> None:
    """Scenario 2: at one offset the former leader has another record than the present one."""
    state = follow([(0, 0)], end=2, epoch=1)
    assert state.asking == 0
    leader = LeaderEpochCache([(0, 0), (1, 1)])
    assert state.find_divergence(1, 0, leader.find_end(0, 0, 2)) == 1
    assert (state.end, state.asking) == (1, None)


def test_kip_279_the_leader_never_had_the_followers_epoch() -> None:
    """Two quick changes of leaders: the follower goes back an epoch, and asks again."""
    state = follow([(0, 0), (2, 20)], end=30, epoch=3)
    leader = LeaderEpochCache([(0, 0), (1, 10), (3, 20)])
    assert state.asking == 2
    assert state.find_divergence(3, 2, leader.find_end(2, 0, 25)) == 20
    assert state.asking == 0
    assert state.find_divergence(3, 0, leader.find_end(0, 0, 25)) == 10
    assert state.asking is None
    assert state.epochs.entries == [(0, 0)]


def test_kip_279_they_have_an_earlier_epoch_in_common() -> None:
    state = follow([(0, 0), (1, 10), (3, 15)], end=30, epoch=4)
    leader = LeaderEpochCache([(0, 0), (1, 10), (2, 12), (4, 20)])
    assert state.find_divergence(4, 3, leader.find_end(3, 0, 40)) == 15
    assert state.asking == 1
    assert state.find_divergence(4, 1, leader.find_end(1, 0, 40)) == 12
    assert state.asking is None


def test_an_epoch_that_wrote_nothing_gives_way_to_records_of_an_earlier_one() -> None:
    """The follower led under epoch 2 without a record; the leader of epoch 3 has more of epoch 0 than the follower."""
    state = follow([(0, 0), (2, 20)], end=20, epoch=3)
    leader = LeaderEpochCache([(0, 0), (3, 25)])
    assert state.find_divergence(3, 2, leader.find_end(2, 0, 26)) is None
    assert (state.end, state.asking) == (20, None)
    assert state.epochs.entries == [(0, 0)]
    assert state.epochs.last == 0


def test_a_log_without_records_is_fetched_at_once() -> None:
    assert follow([], end=0, epoch=3).asking is None


def test_a_follower_that_was_ahead_loses_nothing_that_the_leader_has() -> None:
    state = follow([(0, 0)], end=5, epoch=1, watermark=3)
    assert state.find_divergence(1, 0, (0, 4)) == 4
    assert state.high_watermark == 3


def test_an_older_leader_is_not_followed() -> None:
    state = follow([(0, 0)], end=5, epoch=4)
    assert not state.follow_leader(3, 3)
    assert not state.follow_leader(3, 4), "an epoch has one leader"
    assert state.leader == 2
    assert state.follow_leader(3, 5)


def test_answers_that_nobody_waits_for_change_nothing() -> None:
    state = follow([(0, 0), (1, 3)], end=5, epoch=2)
    assert not state.accepts(2, 5), "it has not been asked yet where the epoch ends"
    assert state.find_divergence(1, 1, (1, 4)) is None
    assert state.find_divergence(2, 0, (0, 1)) is None
    assert state.find_divergence(2, 1, (-1, -1)) is None, "the leader does not know"
    assert state.find_divergence(2, 1, (1, 9)) is None
    assert state.accepts(2, 5)
    assert state.find_divergence(2, 1, (1, 3)) is None, "the same answer, a second time"
    assert not state.accepts(2, 4)
    assert not state.accepts(1, 5)
    assert state.end == 5


def test_the_watermark_follows_the_leaders_and_never_goes_back() -> None:
    state = follow([], end=0, epoch=1)
    state.appended(4)
    assert state.update_high_watermark(9)
    assert state.high_watermark == 4
    assert not state.update_high_watermark(2)
    assert state.high_watermark == 4


def test_who_is_too_far_behind_begins_anew() -> None:
    state = follow([(0, 0)], end=5, epoch=1, watermark=5)
    state.restart(100)
    assert (state.end, state.high_watermark, state.asking, state.epochs.entries) == (100, 100, None, [])


def test_the_watermark_stops_at_the_end_of_the_copy_and_the_target_does_not() -> None:
    state = follow([(0, 0)], end=5, epoch=0)
    assert state.target == -1
    assert state.update_high_watermark(20)
    assert (state.high_watermark, state.target) == (5, 20)
    assert not state.update_high_watermark(21)
    assert (state.high_watermark, state.target) == (5, 21)
