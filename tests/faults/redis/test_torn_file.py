"""The append-only file ends too early (reliability F06): stream and state agree at every byte."""

from collections.abc import Callable
from pathlib import Path

from broker_process import BrokerProcess
from faults.redis.load import read_log
from kafka_server import make_batch, run
from raw_connection import connect, start_producer
from redis_server import RedisServer

STREAM, STATE = "korvet:t:0", "{korvet:t:0}:@state"
BATCHES, TAIL = 6, 200


def look(server: RedisServer) -> tuple[bytes, bytes]:
    """The last id in the stream and the end that the state tells."""
    fields = server.call("XINFO", "STREAM", STREAM)
    return fields[fields.index(b"last-generated-id") + 1], server.call("HGET", STATE, "end")


def test_a_file_cut_at_each_of_its_last_bytes(serve: Callable[..., BrokerProcess], redis_server: RedisServer) -> None:
    legal: dict[tuple[bytes, bytes], list[tuple[int, bytes]]] = {}
    stored: list[tuple[int, bytes]] = []
    batches: list[bytes] = []

    async def write() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            producer = await start_producer(client)
            for number in range(BATCHES):
                values = (b"%d" % number, b"second")
                batches.append(bytes(make_batch(*values, producer=(*producer, 2 * number))))
                row = await client.produce("t", bytearray(batches[-1]))
                assert row["error_code"] == 0, row
                stored.extend((row["base_offset"] + each, value) for each, value in enumerate(values))
                legal[look(redis_server)] = list(stored)

    async def repeat() -> None:
        """The producer sends everything again that it may: the last five; none is there twice afterwards."""
        async with connect(broker.port) as client:
            for batch in batches[-5:]:
                assert (await client.produce("t", bytearray(batch)))["error_code"] == 0

    broker = serve(redis_server.url)
    run(write)
    broker.kill()
    redis_server.kill()
    file = find_file(redis_server.directory)
    whole = cut_behind_the_last_append(file.read_bytes())
    met = set()
    for cut in range(TAIL):
        file.write_bytes(whole[: len(whole) - cut])
        redis_server.start()
        found = look(redis_server)
        assert found in legal, f"{cut} bytes less: {found}"
        if found not in met:
            met.add(found)
            broker.start()
            assert read_log(broker.port, "t") == {0: legal[found]}
            run(repeat)
            after = read_log(broker.port, "t")[0]
            assert [value for _, value in after] == [value for _, value in stored]
            assert after[: len(legal[found])] == legal[found]
            broker.kill()
        redis_server.kill()
    assert len(met) > 1


def cut_behind_the_last_append(whole: bytes) -> bytes:
    """The file up to the last append's EXEC: a lease renewed later would fill the tail that the test cuts."""
    end = b"EXEC\r\n"
    return whole[: whole.index(end, whole.upper().rindex(b"XADD")) + len(end)]


def find_file(directory: Path) -> Path:
    """The part of the append-only file that grows."""
    (file,) = (directory / "appendonlydir").glob("*.incr.aof")
    return file
