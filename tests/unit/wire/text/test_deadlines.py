"""A line has a deadline, from its first byte to its end, and a silent connection one too (security.md, B7)."""

import asyncio
import socket
from pathlib import Path

import pytest

from core_world import run_broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.net.limits import Limits, ServerLimits
from korvet_fast.net.server import Server
from korvet_fast.wire.text.dialect import TextDialect

PING, PONG = b"V1|1|PING|\n", b"V1|1|OK|pong\n"
ENOUGH = 3600.0  # seconds: a limit that is not the one under test
SOON = 20.0


@pytest.mark.parametrize(
    ("limits", "sent"),
    [
        (Limits(frame=SOON, idle=ENOUGH), b"V1|1|PRODUCE|t k:half"),
        (Limits(frame=SOON, idle=ENOUGH), PING + b"V1|2|PRODUCE|t k:half"),
        (Limits(frame=ENOUGH, idle=SOON), b""),
        (Limits(frame=ENOUGH, idle=SOON), PING),
    ],
    ids=["first-line", "later-line", "nothing", "silence"],
)
def test_b7_lines_and_silence_have_deadlines(tmp_path: Path, limits: Limits, sent: bytes) -> None:
    async def scenario() -> None:
        async with run_broker(tmp_path) as world:
            server = Server(ServerLimits(), limits)
            listener = socket.create_server(("127.0.0.1", 0))
            listener.setblocking(False)
            server.listen(listener, TextDialect(world.broker, 0, FairExecutor(1, "unpack")))
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(sent)
            other, asking = await asyncio.open_connection(*listener.getsockname())
            asking.write(PING)
            assert await other.readline() == PONG  # what came before it has been read
            connection, _ = server.connections
            now = asyncio.get_running_loop().time()
            connection.check(now + SOON / 2)
            if PING in sent:
                assert await reader.readline() == PONG
            assert connection in server.connections
            connection.check(now + SOON + 1)
            assert await reader.read() == b""
            for each in (writer, asking):
                each.close()
            await server.drain(5.0)
            assert world.broker.topics.get("t") is None

    asyncio.run(asyncio.wait_for(scenario(), 120))
