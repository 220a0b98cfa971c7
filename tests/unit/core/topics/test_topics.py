"""Creating, growing, altering and deleting topics; what is kept over a restart."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from batches import make_batch
from core_world import World, copy_as_crashed, put, put_values, read_all, run_broker, settle
from korvet_fast.core.topics.topic import check_name
from korvet_fast.errors import KorvetError, OutcomeUnknown, StoreError
from korvet_fast.store.types import OffsetConflict


def over(data: Path, body: Callable[[World], Coroutine[Any, Any, None]], *flags: str) -> None:
    async def run() -> None:
        async with run_broker(data, *flags) as world:
            await body(world)

    asyncio.run(run())


async def refuse(asked: Coroutine[Any, Any, object]) -> str:
    with pytest.raises(KorvetError) as caught:
        await asked
    return caught.value.error


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "..."])
def test_legal_names(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "a:0", "ä", "a\n", "\0"])
def test_names_that_are_not_legal(name: str) -> None:
    with pytest.raises(KorvetError, match="INVALID_TOPIC_EXCEPTION"):
        check_name(name)


def test_a_topic_is_found_by_name_and_id_and_survives_a_restart(tmp_path: Path) -> None:
    identities: list[bytes] = []

    async def create(world: World) -> None:
        topics = world.broker.topics
        identities.extend([(await topics.create(name, 3, {"retention.ms": "5"})).id for name in ("b", "a", "c")])
        assert [topic.name for topic in topics] == ["a", "b", "c"]
        assert len(topics) == 3
        assert len(set(identities)) == 3
        assert topics.by_id(identities[0]) is topics.get("b")
        assert topics.get("d") is None
        assert topics.by_id(bytes(16)) is None

    async def find(world: World) -> None:
        topics = world.broker.topics
        found = topics.by_id(identities[0])
        assert found is not None
        assert (found.name, len(found.partitions), found.config.retention_ms) == ("b", 3, 5)
        assert [topic.name for topic in topics] == ["a", "b", "c"]
        assert world.broker.partition("a", 2).name == "a:2"
        for name, index in (("a", 3), ("a", -1), ("z", 0)):
            with pytest.raises(KorvetError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                world.broker.partition(name, index)

    over(tmp_path, create)
    over(tmp_path, find)


def test_what_cannot_be_created(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        topics = world.broker.topics
        await topics.create("a.b", 1, {})
        version = topics.version
        assert await refuse(topics.create("a.b", 1, {})) == "TOPIC_ALREADY_EXISTS"
        assert await refuse(topics.create("a_b", 1, {})) == "INVALID_TOPIC_EXCEPTION"
        assert await refuse(topics.create("a/b", 1, {})) == "INVALID_TOPIC_EXCEPTION"
        assert await refuse(topics.create("__cluster_metadata", 1, {})) == "TOPIC_AUTHORIZATION_FAILED"
        assert await refuse(topics.auto_create("__cluster_metadata")) == "TOPIC_AUTHORIZATION_FAILED"
        assert await refuse(topics.create("n", 0, {})) == "INVALID_PARTITIONS"
        assert await refuse(topics.create("n", -2, {})) == "INVALID_PARTITIONS"
        assert await refuse(topics.create("n", 10, {})) == "POLICY_VIOLATION"
        assert await refuse(topics.create("n", 2**31 - 1, {})) == "POLICY_VIOLATION"
        assert await refuse(topics.create("n", 1, {"retention": "1"})) == "INVALID_CONFIG"
        assert topics.version == version
        assert (await topics.create("n", 9, {})).partitions[8].index == 8

    over(tmp_path, body, "max.partitions=10")


def test_validating_keeps_nothing(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        topics = world.broker.topics
        planned = await topics.create("n", -1, {}, validate_only=True)
        assert len(planned.partitions) == 4
        assert topics.get("n") is None
        assert len(topics) == 0
        topic = await topics.create("n", -1, {})
        version = topics.version
        await topics.grow(topic, 5, validate_only=True)
        await topics.alter(topic, {"retention.ms": "9"}, validate_only=True)
        assert await refuse(topics.alter(topic, {"retention.ms": "x"}, validate_only=True)) == "INVALID_CONFIG"
        assert (len(topic.partitions), topic.config.overrides, topics.version) == (4, {}, version)

    over(tmp_path, body, "num.partitions=4")


def test_many_who_ask_for_a_topic_at_once_get_the_same_one(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        found = await asyncio.gather(*[world.broker.topics.auto_create("n") for _ in range(5)])
        assert all(topic is found[0] for topic in found)
        assert len(found[0].partitions) == 1

    over(tmp_path, body)


def test_growing_adds_partitions_and_keeps_records(tmp_path: Path) -> None:
    async def grow(world: World) -> None:
        topics = world.broker.topics
        topic = await topics.create("t", 2, {"durability": "written"})
        put_values(topic.partitions[1], b"kept")
        await topics.grow(topic, 4)
        assert await refuse(topics.grow(topic, 4)) == "INVALID_PARTITIONS"
        assert await refuse(topics.grow(topic, 1)) == "INVALID_PARTITIONS"
        assert await refuse(topics.grow(topic, 10**6)) == "POLICY_VIOLATION"
        put_values(topic.partitions[3], b"new")

    async def look(world: World) -> None:
        topic = world.broker.topics.get("t")
        assert topic is not None
        assert [await read_all(partition) for partition in topic.partitions] == [[], [b"kept"], [], [b"new"]]

    over(tmp_path, grow)
    over(tmp_path, look)


def test_the_logs_that_have_a_partition_are_known_by_name(tmp_path: Path) -> None:
    """The store forgets others."""

    async def body(world: World) -> None:
        topics = world.broker.topics
        topic = await topics.create("a.b", 2, {})
        names = ("a.b:0", "a.b:1", "a.b:2", "a:0", "a_b:0")
        assert [name for name in names if topics.has_partition(name)] == ["a.b:0", "a.b:1"]
        await topics.grow(topic, 3)
        assert [name for name in names if topics.has_partition(name)] == ["a.b:0", "a.b:1", "a.b:2"]
        await topics.delete(topic)
        assert not any(map(topics.has_partition, names))

    over(tmp_path, body)


def test_altering_replaces_settings_and_holds_for_the_next_append(tmp_path: Path) -> None:
    async def alter(world: World) -> None:
        topic = await world.broker.topics.create("t", 1, {"max.message.bytes": "10", "retention.ms": "5"})
        with pytest.raises(KorvetError, match="MESSAGE_TOO_LARGE"):
            put_values(topic.partitions[0], b"a")
        await world.broker.topics.alter(topic, {"retention.ms": "6"})
        put_values(topic.partitions[0], b"a")

    async def look(world: World) -> None:
        topic = world.broker.topics.get("t")
        assert topic is not None
        assert topic.config.overrides == {"retention.ms": "6"}

    over(tmp_path, alter)
    over(tmp_path, look)


def test_changes_made_at_once_from_the_present_settings_are_all_kept(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        topic = await world.broker.topics.create("t", 1, {})
        names = ("retention.ms", "retention.bytes", "max.message.bytes")
        await asyncio.gather(
            *[
                world.broker.topics.alter(topic, lambda name=name: {**topic.config.overrides, name: "5"})
                for name in names
            ]
        )
        assert topic.config.overrides == dict.fromkeys(names, "5")

    over(tmp_path, body)


def test_a_deleted_topic_is_gone_and_its_name_begins_anew(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        topics = world.broker.topics
        old = await topics.create("t", 2, {})
        await settle(put(old.partitions[0], make_batch(producer=(1, 0, 0)), acks=-1))
        await old.partitions[0].saver.save()
        await topics.delete(old)
        assert (topics.get("t"), topics.by_id(old.id), len(topics)) == (None, None, 0)
        assert await refuse(topics.delete(old)) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert await refuse(topics.grow(old, 5)) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert await refuse(topics.alter(old, {})) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert await world.store.scan("state/") == {}
        new = await topics.create("t", 1, {})
        assert new.id != old.id
        assert await settle(put(new.partitions[0], make_batch(producer=(1, 0, 7)), acks=-1)) == 0
        await topics.create("t_", 1, {})

    over(tmp_path, body)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (StoreError("dropped"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (OffsetConflict(-1, fenced=True), "UNKNOWN_TOPIC_OR_PARTITION"),
        (OutcomeUnknown("dropped"), "REQUEST_TIMED_OUT"),
    ],
)
def test_a_client_whose_topic_is_deleted_under_its_produce_is_told_so(
    tmp_path: Path, failure: Exception, error: str
) -> None:
    async def body(world: World) -> None:
        topic = await world.broker.topics.create("t", 1, {})
        world.store.hold = []
        _, _, _, done = put(topic.partitions[0], make_batch(), acks=-1)
        assert done is not None
        await world.broker.topics.delete(topic)
        world.store.hold[0].set_exception(failure)
        await asyncio.wait([done])
        ended = done.exception()
        assert ended is not None
        assert topic.partitions[0].leader.explain(ended).error == error

    over(tmp_path, body)


def test_an_append_under_way_ends_with_its_topic(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The append is not acknowledged, and nobody looks for the log that is gone."""

    async def body(world: World) -> None:
        topic = await world.broker.topics.create("t", 1, {})
        world.store.hold = []
        appended = put(topic.partitions[0], make_batch(), acks=-1)
        await world.broker.topics.delete(topic)
        world.store.hold[0].set_exception(StoreError("t:0 was dropped"))
        with pytest.raises(StoreError, match="dropped"):
            await settle(appended)
        assert await refuse(topic.partitions[0].read(0, 1)) == "UNKNOWN_TOPIC_OR_PARTITION"
        with pytest.raises(KorvetError, match="was deleted"):
            put(topic.partitions[0], make_batch())

    over(tmp_path, body)
    assert caplog.text == ""


def test_finding_3_5_nothing_is_kept_of_a_topic_that_is_deleted(tmp_path: Path) -> None:
    """Also without a collection of rubbish: a full one would stop everybody."""

    async def body(world: World) -> None:
        leaders = dict(world.broker.cluster._preferred)
        topic = await world.broker.topics.create("t", 3, {})
        assert world.broker.cluster._preferred != leaders
        for partition in topic.partitions:
            await settle(put(partition, make_batch(producer=(1, 0, 0)), acks=-1))
        gone = [weakref.ref(partition) for partition in topic.partitions]
        del partition
        gc.disable()
        try:
            await world.broker.topics.delete(topic)
            del topic
            for _ in range(5):
                await asyncio.sleep(0)
            assert [found() for found in gone] == [None, None, None]
            assert world.broker.cluster._preferred == leaders
        finally:
            gc.enable()

    over(tmp_path, body)


def test_a_partition_is_not_saved_again_while_its_topic_is_deleted(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        topics = world.broker.topics
        topic = await topics.create("t", 20, {})
        for partition in topic.partitions:
            put(partition, make_batch(producer=(1, 0, 0)))
        await asyncio.gather(topics.delete(topic), topics.save())
        assert await world.store.scan("state/") == {}

    over(tmp_path, body)


def test_a_deletion_cut_short_by_a_crash_is_ended_at_the_next_start(tmp_path: Path) -> None:
    image = tmp_path / "image"

    async def crash(world: World) -> None:
        topics = world.broker.topics
        topic = await topics.create("t", 2, {})
        await settle(put(topic.partitions[1], make_batch(), acks=-1))
        deleting = topic.describe()._replace(deleting=True).pack()
        assert await world.store.save("topics/t", deleting, topic.packed)
        copy_as_crashed(tmp_path / "data", image)
        assert await refuse(topics.delete(topic)) == "UNKNOWN_TOPIC_OR_PARTITION"

    async def look(world: World) -> None:
        assert len(world.broker.topics) == 0
        assert await world.store.scan("topics/") == {}
        topic = await world.broker.topics.create("t", 2, {})
        assert await settle(put(topic.partitions[1], make_batch(), acks=-1)) == 0

    over(tmp_path / "data", crash)
    over(image, look)


def test_a_deletion_that_failed_is_ended_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name was taken until the broker started again."""

    async def body(world: World) -> None:
        topics = world.broker.topics
        topic = await topics.create("t", 3, {})
        await settle(put(topic.partitions[1], make_batch(), acks=-1))
        drop, refused = world.store.drop, list[str]()

        async def refuse_one(log: str) -> None:
            if log == "t:1" and len(refused) < 2:
                refused.append(log)
                raise StoreError("the disk is on fire")
            await drop(log)

        monkeypatch.setattr(world.store, "drop", refuse_one, raising=False)
        with pytest.raises(StoreError, match="on fire"):
            await topics.delete(topic)
        assert await refuse(topics.create("t", 1, {})) == "TOPIC_ALREADY_EXISTS"
        async with asyncio.timeout(60):
            while await world.store.scan("topics/"):
                await asyncio.sleep(0.01)
        assert len(refused) == 2
        made = await topics.create("t", 3, {})
        assert await settle(put(made.partitions[1], make_batch(), acks=-1)) == 0

    over(tmp_path, body)


def count_segments(data: Path, partition: str) -> int:
    return len(list((data / partition).glob("*.log")))


def test_a_topic_has_segments_of_its_own_size_and_age(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path, "durability=written") as world:
            topics = world.broker.topics
            by_size = await topics.create("by-size", 1, {"segment.bytes": "1500", "retention.bytes": "3000"})
            by_time = await topics.create("by-time", 1, {"segment.ms": "100", "retention.ms": "450"})
            plain = await topics.create("plain", 1, {})
            for _ in range(10):
                for topic in (by_size, by_time, plain):
                    put(topic.partitions[0], make_batch([b"x" * 600], times=[world.clock.ms]))
                world.clock.ms += 60
            assert [count_segments(tmp_path, f"{topic.name}-0") for topic in topics] == [5, 5, 1]
            await world.broker.apply_retention(0.0)
            # Records of 671 bytes, two a segment: three segments hold 4026 bytes, two 2684.
            assert [topic.partitions[0].log.start for topic in topics] == [4, 2, 0]
            assert [count_segments(tmp_path, f"{topic.name}-0") for topic in topics] == [3, 4, 1]
            values = [await read_all(topic.partitions[0], topic.partitions[0].log.start) for topic in topics]
            assert list(map(len, values)) == [6, 8, 10]

    asyncio.run(run())


def test_an_altered_segment_size_holds_from_the_next_append_on(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        topic = await world.broker.topics.create("t", 1, {"segment.bytes": "100000"})
        partition = topic.partitions[0]
        for _ in range(4):
            put_values(partition, b"x" * 1000)
        assert count_segments(tmp_path, "t-0") == 1
        await world.broker.topics.alter(topic, {"segment.bytes": "1024"})
        for _ in range(4):
            put_values(partition, b"x" * 1000)
        assert count_segments(tmp_path, "t-0") == 5
        await world.broker.topics.alter(topic, {})
        for _ in range(4):
            put_values(partition, b"x" * 1000)
        assert count_segments(tmp_path, "t-0") == 5
        await settle(put(partition, make_batch([b"last"]), acks=-1))
        assert len(await read_all(partition)) == 13

    over(tmp_path, body)


def test_retention_deletes_old_records_and_survives_a_failing_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with run_broker(tmp_path, "durability=written", "log.segment.bytes=1024") as world:
            topics = world.broker.topics
            by_time = (await topics.create("by-time", 1, {"retention.ms": "1000"})).partitions[0]
            by_size = (await topics.create("by-size", 1, {"retention.bytes": "2000"})).partitions[0]
            forever = (await topics.create("forever", 1, {"retention.ms": "-1"})).partitions[0]
            for partition in (by_time, by_size, forever):
                for _ in range(10):
                    put_values(partition, b"x" * 500)
            await world.broker.apply_retention(0.0)
            assert by_time.log.start == 0
            assert 0 < by_size.log.start < 10
            world.clock.ms += 5000
            world.clock.seconds += 5
            world.store.refuse_cut = StoreError("the disk is on fire")
            await world.broker.apply_retention(0.0)
            assert "0: retention failed: KAFKA_STORAGE_ERROR" in caplog.text
            world.store.refuse_cut = None
            await world.broker.apply_retention(0.0)
            assert by_time.log.start > 0
            assert forever.log.start == 0
            assert put_values(by_time, b"next") == 10

    asyncio.run(run())


def test_a_change_that_cannot_be_made_takes_nothing_from_the_quota(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        topics = world.broker.topics
        gone = await topics.create("gone", 5, {})
        await topics.delete(gone)
        for _ in range(3):
            assert await refuse(topics.delete(gone)) == "UNKNOWN_TOPIC_OR_PARTITION"
            assert await refuse(topics.grow(gone, 9)) == "UNKNOWN_TOPIC_OR_PARTITION"
        await topics.create("last", 1, {})  # of eleven
        assert await refuse(topics.create("more", 1, {})) == "THROTTLING_QUOTA_EXCEEDED"
        assert await refuse(topics.delete(gone)) == "UNKNOWN_TOPIC_OR_PARTITION"

    over(tmp_path, body, "controller.mutation.rate=1", "controller.mutation.burst=11")
