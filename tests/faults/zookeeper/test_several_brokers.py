"""Two brokers over one Redis: clients of Kafka 0.7 find a topic where all of its partitions are led."""

from contextlib import suppress
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from broker_process import BrokerProcess
from korvet_fast.zookeeper.connect_string import ConnectString
from korvet_reference.legacy_client import FetchError, LegacyClient, encode_message
from redis_server import RedisServer, find_program, free_port
from zookeeper_server import until

HELLO = encode_message(b"hello")


async def test_a_topic_is_told_by_the_broker_that_leads_all_of_it(
    where: ConnectString, eyes: KazooClient, tmp_path: Path
) -> None:
    ports = {1: free_port(), 2: free_port()}

    def told(topic: str) -> dict[str, bytes]:
        path = f"{where.chroot}/brokers/topics/{topic}"
        try:
            return {broker: eyes.get(f"{path}/{broker}")[0] for broker in eyes.get_children(path)}
        except NoNodeError:  # of the topic, or of a broker that has just taken it away
            return {}

    def read(topic: str) -> bytes:
        """What clients find where they are sent; nothing while the topic goes over to another broker."""
        found = b""
        for broker in told(topic):
            with LegacyClient("127.0.0.1", ports[int(broker)]) as client, suppress(FetchError):
                found = client.fetch(topic, 0, 0)
        return found

    with RedisServer(find_program("redis-server"), tmp_path / "redis") as server:
        first, second = (
            BrokerProcess(
                tmp_path,
                f"node.id={number}",
                "num.partitions=1",
                "topic.partition.count.map=many:8",
                store=server.url,
                arguments=("--listen", f"legacy://127.0.0.1:{port}", "--zookeeper", str(where)),
            )
            for number, port in ports.items()
        )
        with first:
            with LegacyClient("127.0.0.1", ports[1]) as client:
                for topic in ("one", "other", "many"):
                    client.produce(topic, 0, HELLO)
                client.offsets("many", 0)
            await until(lambda: told("many") == {"1": b"8"} and told("one") == {"1": b"1"})
            with second:
                await until(lambda: told("many") == {})  # each leads four
                for topic in ("one", "other"):
                    await until(lambda topic=topic: len(told(topic)) == 1 and read(topic) == HELLO)
            await until(lambda: told("many") == {"1": b"8"})
    said = "topic 'many' is not told to ZooKeeper: several brokers lead its partitions"
    assert any(said in line for line in (*first.log, *second.log))
