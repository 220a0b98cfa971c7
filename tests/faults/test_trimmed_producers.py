"""The producer state of a partition whose records of the producers were deleted before a crash."""

from collections.abc import Callable

from broker_process import BrokerProcess
from counts import note_values
from kafka_server import DELETE_RECORDS, RawClient, error_of, make_batch, run
from raw_connection import connect, read_places, start_producer

Start = Callable[..., BrokerProcess]


async def send(client: RawClient, producer: tuple[int, int], sequence: int) -> str:
    return error_of(await client.produce("t", make_batch(b"%d" % sequence, producer=(*producer, sequence))))


def test_finding_1_5_a_saved_state_below_the_start_of_the_log_is_not_believed(start_broker: Start) -> None:
    broker = start_broker()
    producer = (-1, -1)

    async def begin() -> None:
        nonlocal producer
        async with connect(broker.port) as client:
            await client.create("t")
            producer = await start_producer(client)
            assert [await send(client, producer, number) for number in range(20)] == [""] * 20

    async def go_on_and_delete() -> None:
        async with connect(broker.port) as client:
            assert [await send(client, producer, number) for number in range(20, 70)] == [""] * 50
            partition = {"partition_index": 0, "offset": 70}
            asked = [{"name": "t", "partitions": [partition]}]
            answer = await client.ask(DELETE_RECORDS, 2, topics=asked, timeout_ms=1000)
            assert answer["topics"][0]["partitions"][0] == {"partition_index": 0, "low_watermark": 70, "error_code": 0}

    async def come_back() -> None:
        async with connect(broker.port) as client:
            assert await send(client, producer, 70) == ""
            assert await send(client, producer, 72) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
            assert await send(client, producer, 71) == ""
            kept, found = [(70, b"70"), (71, b"71")], await read_places(client, "t", start=70)
            note_values(kept, found)  # the others were deleted as somebody asked for it
            assert found == kept

    run(begin)
    broker.stop()
    broker.start()
    run(go_on_and_delete)
    broker.kill()
    broker.start()
    run(come_back)
