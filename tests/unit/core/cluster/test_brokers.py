"""Brokers over one store: partitions are spread, move without a gap, and everybody knows who leads."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core_world import BLIND, StillClock, read_all, send
from kafka_messages import CATALOG
from kafka_server import METADATA, kafka_server, run
from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.cluster.leader_directory import PREFIX as LEADERS
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.endpoint import KAFKA, Endpoint
from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.dialect import KafkaDialect
from korvet_fast.wire.kafka.errors import CODES
from shared_store import Server, SharedStore

PARTITIONS = 8
DENSE = {"storage.layout": "batches"}


@pytest.fixture(autouse=True)
def same_id_of_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who leads which partition follows from the topic's id, which is drawn: of some, a broker leaves all to one."""
    monkeypatch.setattr("korvet_fast.core.topics.topics.secrets.token_bytes", lambda size: bytes(range(size)))


class One:
    """A broker that looks at the others when the test says so."""

    def __init__(self, server: Server, port: int) -> None:
        self.address = Endpoint(KAFKA, "127.0.0.1", port)
        self.broker = Broker(SharedStore(server), read_settings(BLIND), StillClock())
        self.broker.cluster.refresh_soon = lambda: None

    async def refresh(self) -> None:
        await self.broker.cluster.refresh()
        await self.sync()

    async def sync(self) -> None:
        """Until what was seen has been followed."""
        while self.broker.metadata_sync.running is not None and not self.broker.metadata_sync.running.done():
            await asyncio.wait([self.broker.metadata_sync.running])

    @property
    def leads(self) -> set[int]:
        topic = self.broker.topics.get("t")
        assert topic is not None
        return {partition.index for partition in topic.partitions if partition.leadership.leads}

    @property
    def leaders(self) -> list[int]:
        """As clients are told."""
        return [self.find_leader(index)[0] for index in range(PARTITIONS)]

    def find_leader(self, index: int) -> tuple[int, int]:
        """The leader of a partition and its epoch, as clients are told."""
        topic = self.broker.topics.get("t")
        assert topic is not None
        return self.broker.find_leader(topic, index)


@asynccontextmanager
async def start(server: Server, port: int) -> AsyncIterator[One]:
    one = One(server, port)
    await one.broker.open([one.address])
    try:
        yield one
    finally:
        await one.broker.close()


def over(body: Callable[[Server, One], Coroutine[Any, Any, None]]) -> None:
    """With one broker that has a topic `t`, and a record in each partition."""

    async def scenario() -> None:
        server = Server()
        async with start(server, 9001) as first:
            topic = await first.broker.topics.create("t", PARTITIONS, DENSE)
            for partition in topic.partitions:
                await send(partition, b"old", producer=(7, 0, 0))
            await body(server, first)

    asyncio.run(scenario())


def test_a_newcomer_takes_its_part_and_both_say_so() -> None:
    async def body(server: Server, first: One) -> None:
        assert first.leads == set(range(PARTITIONS))
        async with start(server, 9002) as second:
            assert len(second.leads) == PARTITIONS // 2
            await first.refresh()
            assert first.leads == set(range(PARTITIONS)) - second.leads
            assert first.leaders == [2 if index in second.leads else 1 for index in range(PARTITIONS)]
            await second.refresh()
            assert second.leaders == first.leaders
            for index in range(PARTITIONS):
                leader, other = (second, first) if index in second.leads else (first, second)
                partition = leader.broker.partition("t", index)
                await send(partition, b"new", producer=(7, 0, 1))
                assert await send(partition, b"new", producer=(7, 0, 1)) == 1  # known from whoever led before
                assert await read_all(partition) == [b"old", b"new"]
                with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER"):
                    other.broker.partition("t", index)

    over(body)


def test_who_has_not_noticed_stores_nothing_and_learns_it_from_the_store() -> None:
    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            index = min(second.leads)
            stale = first.broker.partition("t", index)
            with pytest.raises(Exception, match="True"):  # OffsetConflict, fenced
                await send(stale, b"late")
            assert index not in first.leads
            assert await read_all(second.broker.partition("t", index)) == [b"old"]

    over(body)


def test_who_has_not_noticed_finds_no_gap_in_what_others_have_stored() -> None:
    """librdkafka fails for good where a leader misses batches that another one has acknowledged."""

    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            index = min(second.leads)
            stale = first.broker.partition("t", index)
            await send(second.broker.partition("t", index), b"new", producer=(7, 0, 1))
            with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER"):
                await send(stale, b"newer", producer=(7, 0, 2))
            with pytest.raises(KorvetError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
                await send(second.broker.partition("t", index), b"newest", producer=(7, 0, 3))

    over(body)


def test_what_another_took_over_that_did_not_know_whose_turn_it_was_is_taken_back() -> None:
    """As a broker does whose server's history broke: it sees only later who else is there."""

    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            await first.refresh()
            mine, theirs = first.leads, second.leads
            topic = second.broker.topics.get("t")
            assert topic is not None
            for index in mine:
                await topic.partitions[index].leader.become_leader()
            await second.broker.metadata_sync.tell()
            await first.refresh()
            await second.refresh()
            assert (first.leads, second.leads) == (mine, theirs)
            assert first.leaders == second.leaders

    over(body)


def test_a_broker_that_was_taken_for_dead_leads_nothing_before_it_has_looked_around() -> None:
    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            await first.refresh()
            mine = first.leads
            record = next(key for key in server.keys if key == f"brokers/{first.broker.node_id}")
            del server.keys[record]
            await second.refresh()
            assert second.leads == set(range(PARTITIONS))
            await first.broker.cluster.refresh()  # it is back at once, and has not seen yet who leads
            for index in mine:
                with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER"):
                    first.broker.partition("t", index)
            assert first.broker.node_id not in first.leaders
            for _ in range(2):
                await first.refresh()
                await second.refresh()
            assert (first.leads, second.leads) == (mine, set(range(PARTITIONS)) - mine)
            assert first.leaders == second.leaders

    over(body)


def test_while_nobody_leads_clients_are_told_of_the_last_epoch() -> None:
    """A client that is told of none takes the next leader it hears of, whoever that was (KIP-320)."""

    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second, start(server, 9003) as third:
            for _ in range(2):
                for one in (first, second, third):
                    await one.refresh()
            known = {index: first.find_leader(index) for index in second.leads}
            assert {leader for leader, _ in known.values()} == {second.broker.node_id}
            del server.keys[f"brokers/{second.broker.node_id}"]
            await third.refresh()
            left = known.keys() - third.leads
            assert left
            assert all(third.find_leader(index) == (-1, known[index][1]) for index in left)
            await second.broker.cluster.refresh()  # it is back at once, and has not seen yet who leads
            assert all(second.find_leader(index) == (-1, epoch) for index, (_, epoch) in known.items())
            for _ in range(2):
                for one in (first, second, third):
                    await one.refresh()
            assert all(third.find_leader(index)[1] > known[index][1] for index in left)

    over(body)


def test_who_believes_to_lead_learns_of_a_later_leader_that_has_given_up() -> None:
    """Clients that know the later epoch would take no notice of it, and nobody would append and find out."""

    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            index = min(second.leads)
            assert index in first.leads  # it has not looked yet
            _, epoch = second.find_leader(index)
            topic = second.broker.topics.get("t")
            assert topic is not None
            topic.partitions[index].leader.resign("it was taken for gone")
            await second.broker.metadata_sync.tell()
            await first.refresh()
            assert index not in first.leads
            await second.refresh()
            await first.refresh()
            leader, later = first.find_leader(index)
            assert (leader, later) == second.find_leader(index)
            assert leader == second.broker.node_id
            assert later > epoch

    over(body)


def test_epochs_of_deleted_topics_are_forgotten() -> None:
    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            await first.refresh()
            await second.refresh()
            topic = first.broker.topics.get("t")
            assert topic is not None
            assert second.broker._directory.highest >= 0
            await first.broker.topics.delete(topic)
            await first.refresh()
            for _ in range(2):
                await second.refresh()
            assert second.broker._directory.highest == -1

    over(body)


def test_who_leaves_hands_over_before_it_stops() -> None:
    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            await first.refresh()
            await second.refresh()
            topic = first.broker.topics.get("t")
            assert topic is not None
            before = {index: first.broker.find_leader(topic, index)[1] for index in second.leads}
            leaving = asyncio.create_task(second.broker.leave())
            while not leaving.done():
                await first.refresh()
                await second.refresh()
                second.broker.clock.seconds += 0.01
                await asyncio.sleep(0)
            assert second.leads == set()
            assert first.leads == set(range(PARTITIONS))
            assert first.leaders == [1] * PARTITIONS
            assert all(first.broker.find_leader(topic, index)[1] > epoch for index, epoch in before.items())
        await first.refresh()
        assert [member.id for member in first.broker.cluster.members] == [1]

    over(body)


def test_topics_that_another_broker_made_are_led_and_those_it_removed_are_gone() -> None:
    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            await first.refresh()
            made = await first.broker.topics.create("made", PARTITIONS, DENSE)
            await second.refresh()
            there = second.broker.topics.get("made")
            assert there is not None
            led = [one.leadership.leads for one in there.partitions]
            assert led == [not one.leadership.leads for one in made.partitions]
            assert any(led)
            await first.broker.topics.delete(made)
            await second.refresh()
            assert second.broker.topics.get("made") is None

    over(body)


def test_what_is_seen_while_something_else_is_followed_is_followed_too() -> None:
    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            await first.refresh()
            await second.sync()
            store = second.broker._store
            known, held, go = store.version, asyncio.Event(), asyncio.Event()

            async def version(prefix: str) -> int:
                if prefix == LEADERS and not go.is_set():
                    held.set()
                    await go.wait()
                return await known(prefix)

            store.version = version  # type: ignore[method-assign]
            await second.broker.cluster.refresh()
            await held.wait()  # it has looked for topics already
            await first.broker.topics.create("made", PARTITIONS, DENSE)
            await second.broker.cluster.refresh()
            go.set()
            await second.sync()
            assert second.broker.topics.get("made") is not None

    over(body)


def test_finding_3_5_the_store_is_asked_once_for_all_unknown_topics_of_a_request() -> None:
    """Asked for each of 20,000, it answered for half a minute, while the request held memory that others waited for."""

    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            await first.broker.topics.create("theirs", 1, DENSE)
            store, looks = second.broker._store, 0
            known = store.version

            async def version(prefix: str) -> int:
                nonlocal looks
                looks += prefix == "topics/"
                return await known(prefix)

            store.version = version  # type: ignore[method-assign]
            topics = [{"name": f"unknown-{number}"} for number in range(500)] + [{"name": "theirs"}]
            values = {"topics": topics, "allow_auto_topic_creation": False}
            header = {"api_key": METADATA, "api_version": 9, "correlation_id": 1, "client_id": "c"}
            frame = CATALOG[METADATA].request.encode(header | values, 9)
            with FairExecutor(1, "test") as workers:
                session = KafkaDialect(second.broker, 0, workers).session("test")
                reply = b"".join(await session.handle(bytearray(frame)))
            answer = CATALOG[METADATA].response.decode(bytearray(reply[4:]), 9, 1000)
            codes = [row["error_code"] for row in answer["topics"]]
            assert codes == [CODES["UNKNOWN_TOPIC_OR_PARTITION"]] * 500 + [0]
            assert looks <= 2  # its own, and perhaps one of those that run by themselves

    over(body)


def test_clients_are_told_of_no_leader_that_their_listener_does_not_reach(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            await server.broker.topics.create("t", 1, {})
            client = await server.connect()
            for listener, expected in ((0, (0, 1, 1)), (1, (CODES["LEADER_NOT_AVAILABLE"], -1, 0))):
                dialect = KafkaDialect(server.broker, listener, server.workers)
                frame = client.request(METADATA, 9, {"topics": [{"name": "t"}]})
                reply = b"".join(await dialect.session("test").handle(bytearray(frame)))
                answer = CATALOG[METADATA].response.decode(bytearray(reply[4:]), 9, 1000)
                (row,) = answer["topics"][0]["partitions"]
                assert (row["error_code"], row["leader_id"], len(answer["brokers"])) == expected
                assert row["leader_epoch"] == server.broker.topics.get("t").partitions[0].leadership.epoch >= 0

    run(scenario)


def test_what_an_unforeseen_error_left_out_is_led_after_the_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            await first.refresh()
            assert first.leads | second.leads == set(range(PARTITIONS))
            assert second.leads
        with monkeypatch.context() as broken:

            async def reconcile(topics: object) -> None:
                raise ZeroDivisionError("unforeseen")

            broken.setattr(first.broker._leaders, "reconcile", reconcile)
            await first.refresh()
        assert first.leads != set(range(PARTITIONS))
        await first.refresh()
        assert first.leads == set(range(PARTITIONS))

    over(body)


def test_looks_that_come_faster_than_they_are_followed_hold_nothing_up() -> None:
    """With a server far away: each time the others are followed, something new is seen meanwhile."""

    async def scenario() -> None:
        server = Server()
        one = One(server, 9001)
        sync = one.broker.metadata_sync._sync

        async def sync_slowly() -> None:
            one.broker.metadata_sync.sync_soon(False)
            await sync()

        one.broker.metadata_sync._sync = sync_slowly  # type: ignore[method-assign]
        try:
            await asyncio.wait_for(one.broker.open([one.address]), 120)
            topic = await one.broker.topics.create("t", 1, DENSE)
            await send(topic.partitions[0], b"before")
            server.change_history("another server")
            assert one.broker.recovery_queue.gate is not None
            await asyncio.wait_for(asyncio.shield(one.broker.recovery_queue.gate), 120)
            await topic.partitions[0].leader.recover()
            await send(topic.partitions[0], b"after")
        finally:
            one.broker.metadata_sync._sync = sync  # type: ignore[method-assign]
            await one.broker.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("second_is_first", [False, True])
def test_nobody_takes_over_from_a_broker_that_an_emptied_registry_forgot(second_is_first: bool) -> None:
    """Only that broker knows which offsets it has acknowledged: who is back first would give them out again."""

    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            await first.refresh()
            await second.refresh()
            before = [first.leads, second.leads]
            for one in (first, second):
                for index in one.leads:
                    assert await send(one.broker.partition("t", index), b"known to its leader only") == 1
            quick, slow = (second, first) if second_is_first else (first, second)
            server.streams.clear()
            server.keys = {}
            for one in (quick, slow):
                server.stores[[first, second].index(one)].change_history("the server was emptied")
                for _ in range(3):
                    await one.refresh()
                for index in one.leads:
                    assert await send(one.broker.partition("t", index), b"new") == 2
            await quick.refresh()
            assert (first.broker.node_id, second.broker.node_id) == (1, 2)
            assert [first.leads, second.leads] == before

    over(body)


def test_a_broker_that_does_not_come_back_to_an_emptied_registry_is_dead_after_a_lease() -> None:
    async def body(server: Server, first: One) -> None:
        async with start(server, 9002) as second:
            await first.refresh()
            assert second.leads
            server.streams.clear()
            server.keys = {}
            server.stores[0].change_history("the server was emptied")
            for _ in range(3):
                await first.refresh()
            assert len(first.leads) == PARTITIONS - len(second.leads)
            first.broker.clock.seconds += first.broker.cluster.lease  # type: ignore[attr-defined]
            await first.refresh()
            assert len(first.leads) == PARTITIONS

    over(body)
