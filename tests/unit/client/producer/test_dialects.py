"""The producer at the text listener and at that of Kafka 0.7, over files and Redis; a Kafka client reads it back."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from broker_process import BrokerProcess
from korvet_fast.client import AsyncProducer, Producer
from korvet_fast.client.producer import DeliveryFailed, Message, Outcome, RowsFailed
from korvet_fast.errors import SettingError
from redis_server import PROGRAMS, RedisServer, find_program, free_port
from text_client import PATIENT

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
PARTITIONS = 4
_numbers = count()


class Served(NamedTuple):
    """A broker with three listeners: an address of each."""

    kafka: str
    text: str
    legacy: str


@pytest.fixture(scope="module", params=["files", "redis"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "files":
        yield from _serve(directory, None)
        return
    with RedisServer(find_program(PROGRAMS[0]), directory / "redis", appendonly="yes") as redis:
        yield from _serve(directory, f"redis://127.0.0.1:{redis.port}")


def _serve(directory: Path, store: str | None) -> Iterator[Served]:
    text, legacy = f"text://127.0.0.1:{free_port()}", f"legacy://127.0.0.1:{free_port()}"
    listeners = ["--listen", text, "--listen", legacy]
    settings = (f"num.partitions={PARTITIONS}", "controller.mutation.rate=1000000")
    with BrokerProcess(directory / "data", *settings, store=store, before=PATIENT, arguments=listeners) as broker:
        yield Served(broker.bootstrap, text, legacy)


@pytest.fixture
def topic() -> str:
    return f"dialect-{next(_numbers)}"


class Read(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def read(served: Served, topic: str, total: int) -> list[Read]:
    """The first records of a topic, each partition's in order, by librdkafka."""
    consumer = Consumer({"bootstrap.servers": served.kafka, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(PARTITIONS)])
    found: list[Read] = []
    while len(found) < total:
        (message,) = consumer.consume(1, timeout=120.0)
        assert message.error() is None
        found.append(Read(message.partition(), message.offset(), message.key(), message.value()))
    consumer.close()
    return found


PIECES = [
    "a",
    " ",
    ":",
    "|",
    "=",
    ",",
    "acks=1",
    " acks=all",
    "V1|1|PRODUCE|",
    "ä",
    "漢",
    "😀",
    "\t",
    "%",
    "\x7f",
    "\x85",
    " ",
]


def write_text(random: Random) -> bytes:
    return "".join(random.choices(PIECES, k=random.randrange(6))).encode()


def write_key(random: Random) -> bytes | None:
    return write_text(random).replace(b":", b"") or None


@pytest.mark.parametrize("acks", ["all", "1"])
def test_text_is_read_as_it_was_sent(run: Run, served: Served, topic: str, acks: str) -> None:
    random = Random(7)
    pairs = [(write_key(random), write_text(random) + b"#%d" % n) for n in range(600)]
    pairs[1] = (None, b"")
    keys, values = zip(*pairs, strict=True)

    async def work() -> list[tuple[int, int]]:
        async with AsyncProducer(served.text, acks=acks) as p:
            sent = [p.send(topic, value, key=key) for key, value in pairs[:300]]
            columns = await p.send_many(topic, keys[300:500], values[300:500])
            await p.input.put(Message(topic, values[500], keys[500]))
            sent += [p.send(topic, value, key=key) for key, value in pairs[501:]]
            found = await asyncio.gather(*sent)
            assert {(each.confirmed, each.timestamp) for each in found} == {(True, -1)}
            places = [(each.partition, each.offset) for each in found]
            assert p.metrics().delivered == 600
        between = list(zip(columns.partitions, columns.offsets, strict=True))
        return [*places[:300], *between, (-1, -1), *places[300:]]

    told = run(work)
    found = {(each.partition, each.offset): (each.key, each.value) for each in read(served, topic, 600)}
    told[500] = next(place for place in found if place not in told)  # what `input` took says nothing of its place
    assert [found[place] for place in told] == pairs
    assert len(set(told)) == 600
    for index in range(PARTITIONS):
        offsets = [offset for partition, offset in told if partition == index]
        assert offsets, "messages without a key go to the partitions in turn"
        assert offsets == sorted(offsets), "in the order in which they were sent"


def test_kafka_07_has_every_payload(run: Run, served: Served, topic: str) -> None:
    random = Random(11)
    values = [b"%d:" % n + random.randbytes(random.randrange(300)) for n in range(500)]

    async def work() -> None:
        async with AsyncProducer(served.legacy) as p:
            sent = [p.send(topic, value, partition=n % PARTITIONS) for n, value in enumerate(values[:200])]
            sent += [p.send(topic, value) for value in values[200:300]]
            columns = await p.send_many(topic, None, values[300:400])
            await p.send_many(topic, None, values[400:], partition=2)
            assert set(columns.offsets) == set(columns.partitions) == {-1}
            for number, each in enumerate(await asyncio.gather(*sent)):
                assert not each.confirmed
                assert (each.offset, each.timestamp) == (-1, -1)
                assert each.partition == (number % PARTITIONS if number < 200 else -1)
            assert {each.outcome for each in sent} == {Outcome.DELIVERED}

    run(work)
    found = read(served, topic, 500)
    assert sorted(each.value or b"" for each in found) == sorted(values)
    for index in range(PARTITIONS):
        named = values[index:200:PARTITIONS] + (values[400:] if index == 2 else [])
        here = [each.value for each in found if each.partition == index]
        assert [each for each in here if each in set(named)] == named


@pytest.mark.parametrize("kind", ["text", "legacy"])
def test_the_blocking_producer_speaks_them_too(served: Served, topic: str, kind: str) -> None:
    with Producer(getattr(served, kind)) as p:
        assert p.send(topic, b"one").result().confirmed is (kind == "text")
        p.send_many(topic, None, [b"two"])
    assert sorted(each.value or b"" for each in read(served, topic, 2)) == [b"one", b"two"]


def test_a_topic_that_may_not_be_made_is_not_written(run: Run, start_broker: Callable[..., BrokerProcess]) -> None:
    text = f"text://127.0.0.1:{free_port()}"
    broker = start_broker("auto.create.topics.enable=false")
    broker.stop()
    broker.arguments = ["--listen", text]
    broker.start()

    async def work() -> None:
        async with AsyncProducer(text) as p:
            with pytest.raises(DeliveryFailed, match=r"no such topic or partition \(UNKNOWN_TOPIC\)") as caught:
                await p.send("missing", b"x")
            assert caught.value.outcome is Outcome.NOT_WRITTEN

    run(work)


ANYWHERE = "127.0.0.1:1"
SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    ("text", {"acks": 0}, "acks: the text protocol answers every line, so acks is all or 1"),
    ("legacy", {"acks": "all"}, "acks: Kafka 0.7 never answers a PRODUCE, so acks is 0"),
    ("text", {"enable_idempotence": True}, "the text protocol has no sequence numbers"),
    ("legacy", {"enable_idempotence": True}, "Kafka 0.7 has no sequence numbers"),
    ("text", {"transactional_id": "a"}, "the text protocol has no transactions; leave transactional_id out"),
    ("legacy", {"transactional_id": "a"}, "Kafka 0.7 has no transactions; leave transactional_id out, or use kafka://"),
    ("text", {"compression_type": "lz4"}, "the text protocol has no compression"),
    ("legacy", {"compression_type": "gzip"}, "Kafka 0.7 is spoken here without compression"),
    ("text", {"partitioner": "crc32"}, "the text protocol has the broker choose partitions"),
    ("legacy", {"partitioner": "manual"}, "Kafka 0.7 has the broker choose partitions"),
    ("text", {"timeout_ms": 10}, "the text protocol has the broker wait two seconds"),
    ("legacy", {"receive_message_max_bytes": 5000}, "Kafka 0.7 never answers"),
    ("text", {"metadata_max_age_ms": 10}, "the text protocol tells nobody who leads a partition"),
]


@pytest.mark.parametrize(("scheme", "settings", "sentence"), SETTINGS, ids=[f"{a} {b}" for a, b, _ in SETTINGS])
def test_settings_that_a_dialect_has_not(scheme: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        AsyncProducer(f"{scheme}://{ANYWHERE}", **settings)


@pytest.mark.parametrize("scheme", ["text", "legacy"])
def test_what_is_off_may_be_said(scheme: str) -> None:
    off = {"enable_idempotence": False, "transactional_id": None, "compression_type": "none"}
    assert not AsyncProducer(f"{scheme}://{ANYWHERE}", **off).config.idempotent


MESSAGES: list[tuple[str, dict[str, Any], str]] = [
    ("text", {"partition": 1}, "has the broker choose the partition: leave partition out"),
    ("text", {"headers": [("a", b"")]}, "has no headers"),
    ("text", {"timestamp": 5}, "has the broker set the time"),
    ("text", {"value": None}, "null is for kafka://"),
    ("text", {"value": b"two\nlines"}, "the value is no text without line ends and NUL"),
    ("text", {"value": b"\xff"}, "the value is no text"),
    ("text", {"value": b"a\0"}, "the value is no text"),
    ("text", {"key": b"a\r"}, "the key is no text"),
    ("text", {"key": b""}, "a key in a line of the text protocol is not empty, and has no colon"),
    ("text", {"key": b"a:b"}, "has no colon"),
    ("text", {"topic": "a b"}, "'a b' is no topic's name"),
    ("legacy", {"key": b"k"}, "a message of Kafka 0.7 has no key"),
    ("legacy", {"headers": [("a", b"")]}, "a message of Kafka 0.7 has no headers"),
    ("legacy", {"timestamp": 5}, "a message of Kafka 0.7 has no time"),
    ("legacy", {"value": None}, "a message of Kafka 0.7 has a payload"),
    ("legacy", {"topic": ".."}, "'..' is no topic's name"),
]


@pytest.mark.parametrize(("scheme", "fields", "sentence"), MESSAGES, ids=[f"{a} {b}" for a, b, _ in MESSAGES])
def test_messages_that_a_dialect_has_not(run: Run, scheme: str, fields: dict[str, Any], sentence: str) -> None:
    message = {"topic": "t", "value": b"v", **fields}
    name, value = message.pop("topic"), message.pop("value")

    async def work() -> None:
        p = AsyncProducer(f"{scheme}://{ANYWHERE}")
        for send in (p.send, p.try_send):
            with pytest.raises(DeliveryFailed, match=sentence) as caught:
                send(name, value, **message)
            assert caught.value.outcome is Outcome.NOT_WRITTEN
        with pytest.raises(DeliveryFailed, match=sentence):
            await p.input.put(Message(name, value, **message))
        assert p.metrics().accepted == 0
        await p.close()

    run(work)


def test_rows_that_a_dialect_has_not_fail_alone(run: Run, served: Served, topic: str) -> None:
    async def work() -> None:
        async with AsyncProducer(served.text) as p:
            with pytest.raises(RowsFailed, match="1 of 3 rows failed, the first is 1: the value") as caught:
                await p.send_many(topic, None, [b"a", b"\xff", b"b"])
            assert list(caught.value.failures) == [1]

    run(work)
    assert sorted(each.value or b"" for each in read(served, topic, 2)) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("bootstrap", "sentence"),
    [
        ("http://h:1", r"the producer does not speak http://; it speaks kafka://, text://, legacy://"),
        ("kafka://h:1,text://h:1", "names several protocols; give the addresses of one"),
        ("text://h:1,text://h:2", "the text protocol does not tell which broker leads a partition; give one address"),
        ("legacy://h:1,legacy://h:2", "Kafka 0.7 does not tell which broker"),
        ("text://h", "is not an address"),
    ],
)
def test_addresses(bootstrap: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        AsyncProducer(bootstrap)
