"""Who may write to a log: taking over, being taken over, resigning, and a server that refuses or does not answer."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from batches import make_batch
from core_world import SharedWorld, put, read_all, run_shared, send
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.types import OffsetConflict
from leader_scene import DENSE, deliver, hold, outcome, over
from shared_store import Server


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
    assert [record.levelname for record in caplog.records if "taken it over" in record.message] == ["WARNING"]


def test_a_log_that_was_given_up_to_who_asked_for_it_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: SharedWorld) -> None:
        name = world.partition.name
        error = world.partition.leader.fail(OffsetConflict(-1, fenced=True, given_up=True))
        assert error.error == "NOT_LEADER_OR_FOLLOWER"
        assert not world.partition.leadership.leads
        said = [record for record in caplog.records if record.message.startswith(name)]
        assert [record.message for record in said] == [f"{name}: given up to another broker, which asked for it"]
        assert said[0].levelname == "INFO"

    with caplog.at_level("INFO"):
        over(body)


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
        assert partition.find_epoch(0) == -1
        store.acquire = acquire  # type: ignore[method-assign]
        await partition.leader.recover()
        assert partition.find_epoch_end(epoch) == (epoch, 1)
        assert partition.find_epoch(0) == epoch

    over(body)


@pytest.mark.parametrize("fails", ["acquire", "read"])
def test_who_takes_a_log_over_at_the_second_attempt_knows_its_producers(fails: str) -> None:
    """A batch that is sent again is answered with its offset, not stored twice."""

    async def body(world: SharedWorld) -> None:
        partition, store = world.partition, world.store
        assert await send(partition, b"a", producer=(7, 0, 0)) == 0
        partition.leader.resign("another broker leads")

        async def fail(*_: Any, **__: Any) -> Any:
            raise StoreError("the server does not answer")

        with pytest.MonkeyPatch.context() as patched:
            if fails == "acquire":
                patched.setattr(store, "acquire", fail)
            else:
                opened = store.open_log(partition.name)
                patched.setattr(store, "open_log", lambda _: replace(opened, read=fail))
            await partition.leader.become_leader()
            assert partition.leadership.refusal is not None
        await partition.leader.recover()
        assert partition.leadership.refusal is None
        assert await send(partition, b"a", producer=(7, 0, 0)) == 0
        assert await send(partition, b"b", producer=(7, 0, 1)) == 1
        assert await read_all(partition) == [b"a", b"b"]

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
