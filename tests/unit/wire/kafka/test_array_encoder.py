"""Answers encoded piece by piece are, byte for byte, what one call of the schema gives."""

import asyncio

import pytest

from kafka_messages import CATALOG
from kafka_requests import fill
from korvet_fast.core import fair_queue
from korvet_fast.core.fair_queue import FairQueue, Pace, Turns
from korvet_fast.wire.kafka.array_encoder import ArrayEncoder, LongReply

LONG = [
    (3, "topics"),
    (9, "groups"),
    (15, "groups"),
    (16, "groups"),
    (19, "topics"),
    (32, "results"),
    (35, "results"),
    (69, "groups"),
]
CASES = [(key, name, version) for key, name in LONG for version in range(CATALOG[key].lowest, CATALOG[key].highest + 1)]


@pytest.mark.parametrize("count", [0, 2, 200])
@pytest.mark.parametrize(("key", "name", "version"), CASES)
def test_the_pieces_are_the_whole(key: int, name: str, version: int, count: int) -> None:
    message = CATALOG[key]
    values = fill(message.response_shape.fields, version)
    if name not in values:
        return  # this version has no such array
    values["correlation_id"] = 7
    values[name] = (values[name] * 100)[:count]
    rows = ArrayEncoder(message.response_shape, name)

    async def collect() -> bytes:
        reply = LongReply(Pace(Turns(FairQueue())))
        await reply.add(rows.head(values, count, version))
        for row in values[name]:
            await reply.add(rows.row(row, version))
        await reply.add(rows.tail(values, version))
        return b"".join(reply.finish())

    assert asyncio.run(collect()) == b"".join(message.response.frame(values, version))


def test_a_long_reply_lets_others_go_first_and_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "SLICE", 0.0)  # each row is the others' turn, however fast the machine is

    async def scenario() -> None:
        reply = LongReply(Pace(Turns(FairQueue())))
        turns = 0
        done = False

        async def count() -> None:
            nonlocal turns
            while not done:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        for _ in range(12_000):
            await reply.add(bytes(1000))
        done = True
        await counting
        parts = reply.finish()
        assert turns > 2
        assert len(parts) > 1
        assert max(map(len, parts)) < 2 << 20
        assert b"".join(parts) == (12_000_000).to_bytes(4, "big") + bytes(12_000_000)

    asyncio.run(scenario())
