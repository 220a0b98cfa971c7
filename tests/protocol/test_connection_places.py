"""Places for connections: whoever is silent or idle makes room, and one client does not take them all.

Over real sockets to a broker process.
"""

import asyncio
import socket
import time
from collections.abc import Callable

from broker_process import BrokerProcess
from kafka_server import API_VERSIONS, run
from witness import beside, connect, open_socket

Start = Callable[..., BrokerProcess]


def test_finding_4_3_silent_newcomers_do_not_lock_their_address_out(start_broker: Start) -> None:
    broker = start_broker("max.connection.creation.rate=100000", "max.connections.per.ip=400")

    async def scenario() -> None:
        old = await connect(broker)
        assert (await old.create("t"))["error_code"] == 0
        silent: list[socket.socket] = []
        await beside(lambda: silent.extend(open_socket(broker) for _ in range(600)))
        for _ in range(3):
            newcomer = await connect(broker)
            assert (await newcomer.fetch("t", 0))["error_code"] == 0
            newcomer.writer.close()
        assert (await old.fetch("t", 0))["error_code"] == 0  # who has spoken never makes room
        for raw in silent:
            raw.close()
        old.writer.close()

    run(scenario)


def test_finding_4_3_who_says_nothing_is_hung_up_on_within_seconds(start_broker: Start) -> None:
    broker = start_broker()

    async def scenario() -> None:
        began = time.monotonic()
        silent, dripping = await connect(broker), await connect(broker)
        dripping.writer.write(b"\0\0\0\x20" + bytes(3))
        ended = asyncio.gather(silent.ended(), dripping.ended())
        assert await asyncio.wait_for(ended, 120) == [b"", b""]
        assert time.monotonic() - began > 5
        for each in (silent, dripping):
            each.writer.close()

    run(scenario)


def test_idle_connections_of_one_address_do_not_lock_others_out(start_broker: Start) -> None:
    broker = start_broker("max.connections=50")

    async def scenario() -> None:
        idle = [await connect(broker) for _ in range(50)]
        for one in idle:
            await one.ask(API_VERSIONS, 3, client_software_name="x", client_software_version="1")
        assert (await idle[0].create("t"))["error_code"] == 0  # so the second is idle for longest
        same = await connect(broker)
        assert await same.ended() == b""  # of the address that holds all
        newcomer = await connect(broker, "127.0.0.2")
        assert (await newcomer.fetch("t", 0))["error_code"] == 0
        assert await asyncio.wait_for(idle[1].ended(), 120) == b""
        for one in (idle[0], *idle[2:], newcomer):
            assert (await one.fetch("t", 0))["error_code"] == 0
        for one in (*idle, same, newcomer):
            one.writer.close()

    run(scenario)
