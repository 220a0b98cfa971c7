"""A producer of an older epoch stays refused, whatever it sends, over kills of the broker (reliability F35)."""

from pathlib import Path

from broker_process import BrokerProcess
from counts import note_values
from kafka_server import RawClient, error_of, make_batch, run
from raw_connection import connect, read_log, start_producer


async def send(client: RawClient, producer: tuple[int, int], sequence: int, value: bytes) -> str:
    return error_of(await client.produce("t", make_batch(value, producer=(*producer, sequence))))


def test_who_was_fenced_stores_nothing(tmp_path: Path) -> None:
    old, new = (-1, -1), (-1, -1)

    async def begin() -> None:
        nonlocal old, new
        async with connect(broker.port) as client:
            await client.create("t")
            old = await start_producer(client)
            new = (old[0], old[1] + 1)
            assert await send(client, old, 0, b"old") == ""
            assert await send(client, new, 0, b"new") == ""

    async def refuse() -> None:
        async with connect(broker.port) as client:
            for sequence in (0, 1, 2):
                assert await send(client, old, sequence, b"fenced") == "INVALID_PRODUCER_EPOCH"
            assert await read_log(client, "t") == [b"old", b"new"]

    async def go_on() -> None:
        async with connect(broker.port) as client:
            assert await send(client, new, 1, b"newer") == ""
            stored, values = [b"old", b"new", b"newer"], await read_log(client, "t")
            note_values(stored, values)
            assert values == stored

    with BrokerProcess(tmp_path / "data") as broker:
        run(begin)
        run(refuse)
        for _ in range(2):
            broker.kill()
            broker.start()
            run(refuse)
        run(go_on)
