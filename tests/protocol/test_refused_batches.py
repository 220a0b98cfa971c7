"""An idempotent producer with several batches on their way, of which the first was refused for the moment."""

from pathlib import Path

import pytest

from kafka_server import KafkaServer, RawClient, error_of, kafka_server, make_batch, run
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.partition.producer_state import ProducerState
from korvet_fast.core.partition.refused_batches import RefusedBatches
from korvet_fast.errors import KorvetError
from raw_connection import read_log, start_producer

AGAIN, GAP = "NOT_LEADER_OR_FOLLOWER", "OUT_OF_ORDER_SEQUENCE_NUMBER"


class Producer:
    """One record in each batch."""

    def __init__(self, client: RawClient, identity: tuple[int, int]) -> None:
        self.client = client
        self.identity = identity

    async def send(self, sequence: int, epoch: int | None = None, **options: int) -> str:
        """The answer to the producer."""
        owner = (self.identity[0], self.identity[1] if epoch is None else epoch, sequence)
        return error_of(await self.client.produce("t", make_batch(b"%d" % sequence, producer=owner), **options))


async def start(server: KafkaServer) -> tuple[Producer, Partition]:
    """A producer that has sent two batches."""
    client = await server.connect()
    await client.create("t")
    producer = Producer(client, await start_producer(client))
    assert [await producer.send(number) for number in range(2)] == ["", ""]
    return producer, server.broker.partition("t", 0)


@pytest.mark.parametrize("acks", [1, -1])
def test_what_was_on_its_way_behind_a_refused_batch_is_no_gap(tmp_path: Path, acks: int) -> None:
    """librdkafka gave itself another epoch where it was told so, and doubled what was in doubt in other partitions."""

    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            producer, partition = await start(server)
            partition.leader.resign("another broker leads")
            assert await producer.send(2, acks=acks) == AGAIN
            await partition.leader.become_leader()
            assert [await producer.send(number, acks=acks) for number in (3, 4)] == [AGAIN] * 2
            assert [await producer.send(number, acks=acks) for number in (2, 3)] == ["", ""]
            assert await producer.send(4) == ""  # and all before it is durable
            assert await read_log(producer.client, "t") == [b"%d" % number for number in range(5)]

    run(scenario)


def test_nor_is_it_stored_ahead_of_it_if_that_was_the_first(tmp_path: Path) -> None:
    """librdkafka takes a batch for stored when one behind it is: the first one was lost."""

    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            producer, partition = Producer(client, await start_producer(client)), server.broker.partition("t", 0)
            partition.leader.resign("another broker leads")
            assert await producer.send(0) == AGAIN
            await partition.leader.become_leader()
            assert [await producer.send(number) for number in (1, 2)] == [AGAIN] * 2
            assert [await producer.send(number) for number in range(3)] == [""] * 3
            assert await read_log(producer.client, "t") == [b"0", b"1", b"2"]

    run(scenario)


def test_a_gap_is_a_gap_where_nothing_was_refused_or_longer_ago(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            producer, partition = await start(server)
            assert await producer.send(3) == GAP
            partition.leader.resign("another broker leads")
            assert await producer.send(2) == AGAIN
            await partition.leader.become_leader()
            told = [await producer.send(3) for _ in range(6)]
            assert told == [AGAIN] * 4 + [GAP] * 2  # five are on their way at most
            partition.leader.resign("another broker leads")
            assert await producer.send(2) == AGAIN
            await partition.leader.become_leader()
            assert await producer.send(3, epoch=1) == GAP  # another one of its lives

    run(scenario)


def test_no_more_are_remembered_than_may_be() -> None:
    refused, producers = RefusedBatches(most=3), ProducerState()
    for number in range(5):
        refused.add("t:0", make_batch(b"a", producer=(number, 0, 7)))
    refused.add("t:0", make_batch(b"of nobody"))
    refused.add("t:0", None)
    assert len(refused) == 3
    told = [is_behind(refused, producers, (number, 0, 8, 1)) for number in range(5)]
    assert told == [False, False, True, True, True]


def test_sequences_begin_again_behind_the_highest() -> None:
    refused, producers = RefusedBatches(), ProducerState()
    refused.add("t:0", make_batch(b"a", producer=(1, 0, 2**31 - 1)))
    assert is_behind(refused, producers, (1, 0, 0, 1))
    assert not is_behind(refused, producers, (1, 0, 2**31 - 2, 1))


def test_what_follows_what_is_known_is_not_behind() -> None:
    """The refused batch was stored by way of another connection."""
    refused, producers = RefusedBatches(), ProducerState()
    refused.add("t:0", make_batch(b"a", producer=(1, 0, 7)))
    producers.add((1, 0, 7, 1), 0, 0, 0.0)
    assert not is_behind(refused, producers, (1, 0, 8, 1))
    assert len(refused) == 0


def is_behind(refused: RefusedBatches, producers: ProducerState, sequence: tuple[int, int, int, int]) -> bool:
    try:
        refused.check("t:0", producers, sequence)
    except KorvetError as error:
        assert error.error == AGAIN
        return True
    return False
