"""Who may write to a log: taking over, being taken over, and a server that forgets what it had."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from batches import make_batch
from core_world import AppendResult, SharedWorld, put, read_all, run_shared, send, settle
from korvet_fast.core.partition.loss_journal import Loss
from korvet_fast.core.partition.partition import Partition
from korvet_fast.errors import KorvetError, StoreError
from shared_store import Server

DENSE = {"storage_layout": "batches"}


def over(body: Callable[[SharedWorld], Coroutine[Any, Any, None]], **configs: str) -> None:
    async def run() -> None:
        async with run_shared(Server()) as world:
            await world.create(**(configs or DENSE))
            await body(world)

    asyncio.run(run())


async def outcome(partition: Partition, appended: AppendResult) -> int | str:
    """The offset a client is told, or the error."""
    assert appended.done is not None
    await asyncio.wait([appended.done])
    failure = appended.done.exception()
    return appended.base_offset if failure is None else partition.leader.explain(failure).error


async def deliver(world: SharedWorld) -> None:
    """Let the server have what was held back."""
    held, world.store.held = world.store.held or [], None
    for apply in held:
        apply()
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def hold(world: SharedWorld, *values: bytes, acks: int = -1) -> list[AppendResult]:
    """Appends, one for each value, that are on their way."""
    world.store.held = []
    return [put(world.partition, make_batch([value]), acks) for value in values]


def test_every_broker_that_takes_a_log_over_has_a_larger_epoch() -> None:
    async def run() -> None:
        server = Server()
        epochs = []
        for _ in range(3):
            async with run_shared(server) as world:
                if not epochs:
                    await world.create(**DENSE)
                epochs.append(world.partition.leadership.epoch)
                await send(world.partition, b"a")
                await send(world.partition, b"b")
        assert epochs == sorted(set(epochs))
        async with run_shared(server) as world:
            ends = [world.partition.find_epoch_end(epoch) for epoch in epochs]
            assert ends == list(zip(epochs, (2, 4, 6), strict=True))
            assert world.partition.find_epoch_end(world.partition.leadership.epoch) == (
                world.partition.leadership.epoch,
                6,
            )
            assert world.partition.find_epoch_end(world.partition.leadership.epoch + 1) == (-1, -1)

    asyncio.run(run())


@pytest.mark.parametrize("configs", [DENSE, {}])
def test_who_was_taken_over_stores_nothing_more_and_says_so(
    configs: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        server = Server()
        async with run_shared(server) as old:
            first = await old.create(**configs)
            await send(first, b"a")
            version = old.broker.topics.version
            async with run_shared(server) as new:
                on_its_way = [put(first, make_batch([b"late"]), acks) for acks in (1, -1)]
                assert [await outcome(first, one) for one in on_its_way] == ["NOT_LEADER_OR_FOLLOWER"] * 2
                assert not first.leadership.leads
                assert old.broker.topics.version > version
                for asked in (
                    lambda: put(first, make_batch()),
                    lambda: first.check_offset(0),
                    lambda: old.broker.partition("t", 0),
                ):
                    with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER"):
                        asked()
                with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER"):
                    await first.read(0, 100)
                await send(new.partition, b"b")
                assert await read_all(new.partition) == [b"a", b"b"]
                # It may come back, and then the other one goes.
                await first.leader.become_leader()
                assert await send(first, b"c") > new.partition.log.end - 1
                assert await read_all(first) == [b"a", b"b", b"c"]

    asyncio.run(run())
    assert "another broker has taken it over" in caplog.text


@pytest.mark.parametrize("configs", [DENSE, {}])
def test_idempotence_goes_with_the_log(configs: dict[str, str]) -> None:
    async def run() -> None:
        server = Server()
        async with run_shared(server) as old:
            await old.create(**configs)
            offsets = [await send(old.partition, b"%d" % n, producer=(7, 0, n)) for n in range(8)]
            # Not stopped: the next one has only what the server has.
            async with run_shared(server) as new:
                again = [await send(new.partition, b"%d" % n, producer=(7, 0, n)) for n in (3, 7, 8)]
                assert again[:2] == [offsets[3], offsets[7]]
                assert again[2] > offsets[7]
                with pytest.raises(KorvetError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
                    await send(new.partition, b"x", producer=(7, 0, 10))

    asyncio.run(run())


@pytest.mark.parametrize("configs", [DENSE, {}])
def test_what_a_full_server_refuses_is_not_acknowledged_and_can_be_sent_again(configs: dict[str, str]) -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        await send(partition, b"0", producer=(7, 0, 0))
        world.server.full = True
        sent = [put(partition, make_batch([b"%d" % n], producer=(7, 0, n)), acks) for n, acks in ((1, -1), (2, 1))]
        assert [await outcome(partition, one) for one in sent] == ["KAFKA_STORAGE_ERROR"] * 2
        assert partition.high_watermark.offset == partition.log.start + 1
        world.server.full = False
        await partition.leader.recover()
        for number in (1, 2):
            await send(partition, b"%d" % number, producer=(7, 0, number))
        assert await read_all(partition) == [b"0", b"1", b"2"]
        assert world.broker.losses == type(world.broker.losses)()

    over(body, **configs)


def test_a_repetition_is_not_acknowledged_before_the_first_one_is_stored() -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        world.store.held = []
        first = put(partition, make_batch([b"a"], producer=(7, 0, 0)), 1)
        again = put(partition, make_batch([b"a"], producer=(7, 0, 0)), 1)
        assert again.done is not None
        world.server.full = True
        await deliver(world)
        assert [await outcome(partition, one) for one in (first, again)] == ["KAFKA_STORAGE_ERROR"] * 2
        world.server.full = False
        await partition.leader.recover()
        assert await send(partition, b"a", acks=1, producer=(7, 0, 0)) == 0
        assert put(partition, make_batch([b"a"], producer=(7, 0, 0)), 1).done is None

    over(body)


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
        await partition.leader.recover()
        assert partition.leadership.epoch > epoch
        assert partition.find_epoch_end(epoch) == (epoch, 1)
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
        assert "given up before" not in caplog.text
        await partition.leader.become_leader()
        world.server.change_history("another server")
        partition.leader.resign("nobody knows this broker there")
        assert "t:0: given up before it was known whether all is there still that had been stored below offset 2" in (
            caplog.text
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


def test_a_server_that_does_not_answer_is_asked_again_until_it_does(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        await send(partition, b"a")
        world.server.down = True
        world.server.change_history("the server was restarted")
        await partition.leader.recover()
        with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER"):
            put(partition, make_batch())
        world.server.down = False
        await world.broker._retry_failed()  # what runs by itself every second
        assert await send(partition, b"b") == 1

    over(body)
    assert "t:0: the server is down" in caplog.text


def test_who_could_not_take_a_log_over_again_tells_nothing_of_its_epochs() -> None:
    """An answer would look like a truncated log: what was known of them is gone, and not yet learned anew."""

    async def body(world: SharedWorld) -> None:
        partition, store = world.partition, world.store
        await send(partition, b"a")
        epoch, acquire = partition.leadership.epoch, store.acquire
        partition.leader.resign("another broker leads")

        async def fail(*_: Any, **__: Any) -> Any:
            raise StoreError("another program took it over at the same time")

        store.acquire = fail  # type: ignore[method-assign]
        await partition.leader.become_leader()
        assert partition.leadership.leads
        with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER"):
            partition.find_epoch_end(epoch)
        store.acquire = acquire  # type: ignore[method-assign]
        await partition.leader.recover()
        assert partition.find_epoch_end(epoch) == (epoch, 1)

    over(body)


def test_a_topic_made_while_the_server_goes_down_is_led_as_soon_as_it_is_back() -> None:
    async def run() -> None:
        async with run_shared(Server()) as world:
            creating = asyncio.create_task(world.create(**DENSE))
            while not world.server.keys.get("topics/t"):
                await asyncio.sleep(0)
            world.server.down = True
            partition = await creating
            with pytest.raises(KorvetError, match="KAFKA_STORAGE_ERROR: the server is down"):
                put(partition, make_batch())
            world.server.down = False
            await partition.leader.recover()
            assert await send(partition, b"a") == 0

    asyncio.run(run())


@pytest.mark.parametrize("down", [False, True])
def test_a_topic_deleted_while_its_log_is_taken_over_stays_deleted(down: bool) -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        partition.leader.resign("another broker leads it from now on")
        leading = asyncio.create_task(partition.leader.become_leader())
        await asyncio.sleep(0)
        partition.leader.delete()
        world.server.down = down
        await leading
        world.server.down = False
        assert not partition.leadership.leads
        with pytest.raises(KorvetError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            put(partition, make_batch())

    over(body)


def test_a_broker_that_resigns_tells_those_who_wait_and_ends_what_it_began() -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        (appended,) = hold(world, b"a")
        await asyncio.sleep(0)
        partition.leader.resign("another broker leads it from now on")
        with pytest.raises(KorvetError, match="another broker leads it from now on"):
            put(partition, make_batch())
        await deliver(world)
        assert await outcome(partition, appended) == 0
        await partition.leader.become_leader()
        assert await read_all(partition) == [b"a"]

    over(body)


def test_acks_all_asks_the_store_whether_it_can_keep_the_promise() -> None:
    async def body(world: SharedWorld) -> None:
        world.store.refuses = "appendfsync is everysec: set it to always"
        with pytest.raises(KorvetError, match="NOT_ENOUGH_REPLICAS: appendfsync is everysec"):
            await send(world.partition, b"a")
        assert await settle(put(world.partition, make_batch(), 1)) == 0
        world.store.refuses = None
        assert await send(world.partition, b"a") == 1

    over(body, durability="fsync", **DENSE)


def lack(world: SharedWorld, lacking: bool) -> None:
    """Whether replicas are lacking that the topic asks for, and the store knows it."""
    world.store.lacking = lacking
    world.store.refuses = "there are no replicas now" if lacking else None


async def poll(world: SharedWorld) -> None:
    """What runs by itself every second, some times."""
    for _ in range(3):
        await world.broker._retry_failed()


@pytest.mark.parametrize("configs", [DENSE, {"storage_layout": "entries"}])
@pytest.mark.parametrize("acks", [1, -1])
def test_what_has_too_few_copies_is_not_shown_and_no_reason_to_take_the_log_over(
    configs: dict[str, str], acks: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        first = await send(partition, b"a")
        epoch = partition.leadership.epoch
        lack(world, True)
        if acks == -1:
            world.store.refuses = None  # the store has not seen it yet
        answered = await outcome(partition, put(partition, make_batch([b"b"]), acks))
        assert answered == ("NOT_ENOUGH_REPLICAS_AFTER_APPEND" if acks == -1 else first + 1)
        await poll(world)
        with pytest.raises(KorvetError, match="NOT_ENOUGH_REPLICAS: there are no replicas"):
            put(partition, make_batch(), 1)
        assert partition.high_watermark.offset == first + 1
        assert await read_all(partition, first) == [b"a"]
        lack(world, False)
        await poll(world)
        assert await read_all(partition, first) == [b"a", b"b"]
        await send(partition, b"c")
        assert partition.leadership.epoch == epoch

    over(body, min_insync_replicas="2", **configs)
    assert caplog.text.count("there are no replicas") < 4


def test_a_new_history_without_replicas_is_taken_over_once_and_shown_when_they_are_back() -> None:
    async def body(world: SharedWorld) -> None:
        partition, epoch = world.partition, world.partition.leadership.epoch
        await send(partition, b"a")
        hold(world, b"b")
        world.store.lacking = True
        await deliver(world)
        assert (partition.high_watermark.offset, partition.log.end) == (1, 2)
        lack(world, True)
        world.server.stream("t:0").durable = 1
        world.server.change_history("a replica took over")
        await poll(world)
        new = partition.leadership.epoch
        assert new > epoch
        await poll(world)
        assert partition.leadership.epoch == new
        assert (partition.high_watermark.offset, partition.log.end) == (1, 2)
        assert partition.find_epoch_end(epoch) == (epoch, 2)
        with pytest.raises(KorvetError, match="NOT_ENOUGH_REPLICAS: there are no replicas"):
            put(partition, make_batch(), 1)
        lack(world, False)
        await poll(world)
        assert await read_all(partition) == [b"a", b"b"]
        assert await send(partition, b"c") == 2
        assert partition.leadership.epoch == new

    over(body, min_insync_replicas="2", **DENSE)


def test_who_takes_over_what_has_too_few_copies_shows_it_when_it_has_enough() -> None:
    async def run() -> None:
        server = Server()
        async with run_shared(server) as old:
            await old.create(min_insync_replicas="2", **DENSE)
            await send(old.partition, b"a")
            async with run_shared(server) as new:
                partition = new.partition
                partition.leader.resign("it takes it over once more")
                partition.high_watermark.reset(0)
                server.stream("t:0").durable = 0
                lack(new, True)
                await partition.leader.become_leader()
                await poll(new)
                assert (partition.high_watermark.offset, partition.log.end) == (0, 1)
                lack(new, False)
                await poll(new)
                assert await read_all(partition) == [b"a"]

    asyncio.run(run())
