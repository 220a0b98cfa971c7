"""Records sent and read: forms, compressions, acks, sizes, positions, times, and brokers of another age."""

import time
from collections.abc import Callable

from compat.client import open_client
from compat.future_client import FutureProxy
from compat.record import BYTE_HEADERS, COMPRESSIONS, FORMS, TEXT_FORMS, Record
from compat.world import Stage
from korvet_fast._native import batch_headers

# What a client cannot send is left out of what it sends; it has to read all that another one can write.
SENDS = {"kcat": TEXT_FORMS, "kafka_python": BYTE_HEADERS, "kafkajs": BYTE_HEADERS}
READS = {"kcat": TEXT_FORMS}


def compression(codec: str) -> Callable[[Stage], None]:
    """Every form of record, in this compression: written and read, and read from and by another client."""

    def play(stage: Stage) -> None:
        records = SENDS.get(stage.name, FORMS)
        stage.client.produce(stage.topic, records, compression=codec)
        if stage.world.store != "entries":
            found = {batch.compression for batch in batch_headers(stage.world.batches_at_rest(stage.topic), True)}
            # Clients leave a batch as it is if compression makes it larger; the one with the large record they do not.
            assert COMPRESSIONS.index(codec) in found <= {0, COMPRESSIONS.index(codec)}
        assert stage.other.consume(stage.topic, len(records)) == records
        others = READS.get(stage.name, SENDS.get(stage.other_name, FORMS))
        assert stage.client.consume(stage.topic, len(records)) == records
        theirs = f"{stage.topic}-2"
        stage.other.produce(theirs, others, compression=codec, idempotent=True)
        assert stage.client.consume(theirs, len(others)) == others

    return play


def acks(stage: Stage) -> None:
    sent = [Record(b"k", level.encode()) for level in ("all", "1", "0")]
    for record, level in zip(sent, ("all", "1", "0"), strict=True):
        stage.client.produce(stage.topic, [record], acks=level)
    assert stage.client.consume(stage.topic, 3) == sent


def idempotence(stage: Stage) -> None:
    records = [Record(b"k", b"%d" % number) for number in range(500)]
    stage.client.produce(stage.topic, records, idempotent=True)
    assert stage.client.consume(stage.topic, 500) == records
    if stage.world.store != "entries":
        found = batch_headers(stage.world.batches_at_rest(stage.topic), True)
        assert all(batch.producer_id >= 0 for batch in found)


def large_records(stage: Stage) -> None:
    records = [Record(b"large %d" % number, bytes([97 + number]) * 1_000_000) for number in range(3)]
    for record in records:
        stage.client.produce(stage.topic, [record])
    assert stage.client.consume(stage.topic, 3) == records


def walk(stage: Stage) -> None:
    stage.other.produce(stage.topic, [Record(None, b"%d" % number) for number in range(20)])
    offsets = [row["offset"] for row in stage.other.rows(stage.topic, 20)]
    found = stage.client.ask("walk", topic=stage.topic, partition=0)
    sought = next(at for at, offset in enumerate(offsets) if offset >= 3)  # not every layout has one offset a record
    assert found["first"] == offsets[:10]
    assert found["sought"] == offsets[sought : sought + 5]
    assert found["paused"] == 0
    assert found["resumed"] == offsets[sought + 5 : sought + 10]


def times(stage: Stage) -> None:
    now = int(time.time() * 1000)
    stage.other.produce(stage.topic, [Record(None, b"x")] * 3, times=[now - 9000, now - 6000, now - 3000])
    offsets = [row["offset"] for row in stage.other.rows(stage.topic, 3)]

    def find(ms: int) -> int:
        return int(stage.client.ask("offset_for_time", topic=stage.topic, partition=0, ms=ms)["offset"])

    assert [find(now - ago) for ago in (9001, 9000, 8999, 3000)] == [offsets[at] for at in (0, 0, 1, 2)]
    assert find(now + 60_000) in (-1, offsets[2] + 1)  # some clients say "the end" where the broker says "none"


def times_written(stage: Stage) -> None:
    now = int(time.time() * 1000) - 100_000
    stage.client.produce(stage.topic, [Record(None, b"x")] * 3, times=[now, now + 7, now + 3])
    assert [row["timestamp"] for row in stage.client.rows(stage.topic, 3)] == [now, now + 7, now + 3]


def future_version(stage: Stage) -> None:
    """The broker does not know the version the client begins with, and says so in version 0 (protocol notes, 1.5)."""
    with FutureProxy() as proxy:
        world = stage.fresh("--advertise", f"kafka://127.0.0.1:{proxy.port}")
        proxy.broker_port = world.broker.port
        with open_client(stage.name, f"127.0.0.1:{proxy.port}") as client:
            client.produce(stage.topic, [Record(b"from", b"the future")])
            assert client.consume(stage.topic, 1) == [Record(b"from", b"the future")]
        assert proxy.refused >= 2


def broker_restart(stage: Stage) -> None:
    world = stage.fresh()
    client = world.client(stage.name)
    sent = []
    for turn in range(2):
        records = [Record(b"%d" % turn, b"%d" % number) for number in range(5)]
        client.produce(stage.topic, records, idempotent=turn > 0)
        sent += records
        assert client.consume(stage.topic, len(sent)) == sent
        world.broker.kill()
        world.broker.start()
    assert client.consume(stage.topic, len(sent)) == sent
