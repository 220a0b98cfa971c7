"""A server that forgets what it had: the loss is told exactly, and no offset is given out twice."""

import asyncio

import pytest

from batches import make_batch
from core_world import SharedWorld, put, read_all, run_shared, send
from korvet_fast.core.partition.loss_journal import Loss
from korvet_fast.errors import KorvetError
from leader_scene import DENSE, hold, outcome, over
from shared_store import Server


def test_a_broken_history_is_told_exactly_and_no_offset_is_used_again(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: SharedWorld) -> None:
        partition, epoch = world.partition, world.partition.leadership.epoch
        for number in range(10):
            await send(partition, b"%d" % number, producer=(7, 0, number))
        on_their_way = hold(world, b"x", b"y")
        world.server.lose("t:0", 6)
        world.store.held = None
        world.server.change_history("the server was replaced by a replica")
        assert [await outcome(partition, one) for one in on_their_way] == ["REQUEST_TIMED_OUT"] * 2
        with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER: the server was replaced"):
            put(partition, make_batch())
        await partition.leader.recover()
        new = partition.leadership.epoch
        assert new > epoch
        assert (partition.log.last_record_end, partition.log.end) == (6, 10)
        assert list(world.broker.losses) == [Loss("t:0", 6, 10, world.clock.ms)]
        assert partition.find_epoch_end(epoch) == (epoch, 10)
        assert partition.find_epoch_end(new) == (new, 10)
        # Those who stand in the gap wait there for what comes after it.
        assert await read_all(partition, 5) == [b"5"]
        assert (await partition.read(8, 100)).data == []
        assert (partition.log.available_bytes(8), partition.log.available_bytes(0) > 0) == (0, True)
        # A producer goes on after what it was told is stored, and what it was told of is answered as before.
        with pytest.raises(KorvetError, match="OUT_OF_ORDER"):
            await send(partition, b"11", producer=(7, 0, 11))
        assert await send(partition, b"9", producer=(7, 0, 9)) == 9
        assert await send(partition, b"10", producer=(7, 0, 10)) == 10
        assert await read_all(partition, 6) == [b"10"]
        assert partition.log.last_record_end == 11
        world.server.change_history("and again")
        await partition.leader.recover()
        assert (partition.log.end, len(world.broker.losses)) == (11, 1)

    over(body)
    assert caplog.text.count("t:0: records were lost: offsets 6 to 9, which had been stored") == 1
    assert caplog.text.count("the server was replaced by a replica") == 1


@pytest.mark.parametrize("configs", [DENSE, {"storage_layout": "entries"}])
def test_a_log_that_was_deleted_behind_the_leaders_back_is_told_once(
    configs: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        offsets = [await send(partition, b"%d" % number) for number in range(3)]
        world.server.delete("t:0")
        following = await send(partition, b"3")
        for _ in range(2):
            await world.broker.apply_retention(0.0)
        assert [(loss.first, loss.end) for loss in world.broker.losses] == [(offsets[0], offsets[-1] + 1)]
        assert await read_all(partition, following) == [b"3"]
        with pytest.raises(KorvetError, match="OFFSET_OUT_OF_RANGE"):
            await partition.read(offsets[0], 100)

    over(body, retention_ms="-1", **configs)
    assert caplog.text.count("records were lost") == 1


def test_a_loss_in_layout_entries_leaves_its_producers_where_they_were() -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        offsets = [await send(partition, b"%d" % n, producer=(7, 0, n)) for n in range(4)]
        on_its_way = hold(world, b"x")
        world.server.lose("t:0", offsets[1])
        world.store.held = None
        world.server.change_history("the server was replaced by a replica")
        assert [await outcome(partition, one) for one in on_its_way] == ["REQUEST_TIMED_OUT"]
        await partition.leader.recover()
        assert [(loss.first, loss.end) for loss in world.broker.losses] == [(offsets[1], offsets[3] + 1)]
        assert await send(partition, b"3", producer=(7, 0, 3)) == offsets[3]
        assert await send(partition, b"4", producer=(7, 0, 4)) > offsets[3]
        assert await read_all(partition) == [b"0", b"4"]

    over(body, storage_layout="entries")


def test_a_history_that_lost_nothing_only_has_a_new_epoch() -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        await send(partition, b"a", producer=(7, 0, 0))
        epoch = partition.leadership.epoch
        world.server.change_history("the server was restarted")
        with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER"):  # an answer would look like a truncated log
            partition.find_epoch_end(epoch)
        assert partition.find_epoch(0) == -1
        await partition.leader.recover()
        assert partition.leadership.epoch > epoch
        assert partition.find_epoch_end(epoch) == (epoch, 1)
        assert partition.find_epoch(0) == epoch
        assert list(world.broker.losses) == []
        assert await send(partition, b"a", producer=(7, 0, 0)) == 0
        assert await send(partition, b"b", producer=(7, 0, 1)) == 1

    over(body)


def test_who_gives_a_log_up_before_looking_what_was_lost_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever leads next does not know what clients were told."""

    async def body(world: SharedWorld) -> None:
        partition = world.partition
        await send(partition, b"a", b"b")
        partition.leader.resign("another broker leads")
        assert "leadership given up" not in caplog.text
        await partition.leader.become_leader()
        world.server.change_history("another server")
        partition.leader.resign("nobody knows this broker there")
        assert (
            "t:0: leadership given up before this broker knew whether all records stored below offset 2 are there"
            in (caplog.text)
        )

    over(body)


def test_a_server_that_lost_everything_is_not_written_at_offset_0_again() -> None:
    async def body(world: SharedWorld) -> None:
        partition, epoch = world.partition, world.partition.leadership.epoch
        await send(partition, b"a", b"b")
        world.server.streams.clear()
        world.server.change_history("the server came back empty")
        await partition.leader.recover()
        for why in ("and it still is", "and it still is, they say"):
            world.server.change_history(why)
            await partition.leader.recover()
        assert [(loss.first, loss.end) for loss in world.broker.losses] == [(0, 2)]
        assert partition.leadership.epoch > epoch
        assert await send(partition, b"c") == 2

    over(body)


def test_a_loss_while_nobody_was_there_is_noticed_at_the_next_start() -> None:
    async def run() -> None:
        server = Server()
        async with run_shared(server) as world:
            await world.create(**DENSE)
            for number in range(10):
                await send(world.partition, b"%d" % number, producer=(7, 0, number))
        server.lose("t:0", 8)
        for life in range(2):
            async with run_shared(server) as world:
                assert [(loss.first, loss.end) for loss in world.broker.losses] == ([(8, 10)] if life == 0 else [])
                assert (world.partition.log.last_record_end, world.partition.log.end) == (8, 10)
                assert await send(world.partition, b"7", producer=(7, 0, 7)) == 7
        async with run_shared(server) as world:
            assert await send(world.partition, b"10", producer=(7, 0, 10)) == 10

    asyncio.run(run())
