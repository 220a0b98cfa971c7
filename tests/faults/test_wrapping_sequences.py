"""An idempotent producer whose sequence numbers come to 2^31-1, over kills of the broker (reliability F35)."""

from pathlib import Path

from broker_process import BrokerProcess
from history import History, Sent
from kafka_server import RawClient, error_of, make_batch, run
from raw_connection import connect, read_places, start_producer

LAST = 2**31 - 1
COUNT = 3  # records of a batch
BATCHES = 12


def sequence(batch: int) -> int:
    """The first sequence number of a batch: the fourth is the one that goes over the end."""
    return (LAST - 10 + COUNT * batch) % (LAST + 1)


def test_sequences_wrap_and_repetitions_are_known_over_kills(tmp_path: Path) -> None:
    history = History()
    producer = (-1, -1)

    def batch(number: int) -> bytearray:
        values = [f"wrapping:{COUNT * number + each}".encode() for each in range(COUNT)]
        return make_batch(*values, producer=(*producer, sequence(number)))

    async def send(client: RawClient, number: int) -> tuple[str, int]:
        row = await client.produce("t", batch(number))
        return error_of(row), row["base_offset"]

    async def begin() -> None:
        nonlocal producer
        async with connect(broker.port) as client:
            await client.create("t")
            producer = await start_producer(client)

    async def go_on(number: int) -> None:
        async with connect(broker.port) as client:
            for each in range(COUNT):
                history.note_sent(Sent("wrapping", COUNT * number + each), 0, once=True)
            if 0 < number < BATCHES - 1:  # of a producer that is not known any sequence is taken
                refused, _ = await send(client, number + 1)
                assert refused == "OUT_OF_ORDER_SEQUENCE_NUMBER"
            assert await send(client, number) == ("", COUNT * number)
            for each in range(COUNT):
                place = (0, COUNT * number + each)
                history.note_acknowledged(Sent("wrapping", COUNT * number + each), place)

    async def repeat(number: int) -> None:
        async with connect(broker.port) as client:
            for known in range(max(0, number - 4), number + 1):
                assert await send(client, known) == ("", COUNT * known)

    async def check() -> None:
        async with connect(broker.port) as client:
            assert history.check({0: await read_places(client, "t")}) == set()

    with BrokerProcess(tmp_path / "data") as broker:
        run(begin)
        for number in range(BATCHES):
            run(lambda number=number: go_on(number))
            if number % 3 == 0:
                broker.kill()
                broker.start()
            run(lambda number=number: repeat(number))
        run(check)
        assert broker.stop() == 0
        assert "Traceback" not in "".join(broker.log)
