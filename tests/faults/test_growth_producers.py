"""Invented producer ids: the memory that they take in a broker, and the producers that they displace."""

from collections.abc import Callable
from pathlib import Path

from batches import make_batch
from broker_process import BrokerProcess
from kafka_server import PRODUCE, RawClient, error_of, run
from raw_connection import connect

Start = Callable[..., BrokerProcess]
PARTITIONS, INVENTED = 8, 18_000
MIB = 1 << 20
AT_A_TIME = 50  # requests under way


def resident(broker: BrokerProcess) -> int:
    """Bytes of memory that the broker has in use."""
    status = Path(f"/proc/{broker.pid}/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def ask_everywhere(client: RawClient, producer_id: int) -> None:
    """One batch of this producer for each partition."""
    batch = make_batch([b"x"], times=[0], producer=(producer_id, 0, 0))
    rows = [{"index": index, "records": batch} for index in range(PARTITIONS)]
    client.send(PRODUCE, 9, {"acks": 1, "timeout_ms": 10_000, "topic_data": [{"name": "t", "partition_data": rows}]})


def test_finding_3_3_invented_producer_ids_share_one_budget_and_displace_no_producer_at_work(
    start_broker: Start,
) -> None:
    async def scenario() -> None:
        async with connect(broker.port) as client:
            await client.create("t", PARTITIONS)
            for sequence in range(2):
                row = await client.produce("t", make_batch([b"honest"], times=[0], producer=(7, 0, sequence)))
                assert row["error_code"] == 0
            before = resident(broker)
            for number in range(INVENTED + AT_A_TIME):
                if number < INVENTED:
                    ask_everywhere(client, 1_000_000 + number)
                if number >= AT_A_TIME:
                    await client.reply()
            grown = resident(broker) - before
            assert grown < 90 * MIB, f"{grown / MIB:.0f} MiB for {INVENTED * PARTITIONS} invented producers"
            gap = await client.produce("t", make_batch([b"honest"], times=[0], producer=(7, 0, 9)))
            assert error_of(gap) == "OUT_OF_ORDER_SEQUENCE_NUMBER"

    broker = start_broker("log.message.timestamp.after.max.ms=9000000000000")
    run(scenario)
