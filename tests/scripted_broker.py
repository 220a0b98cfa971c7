"""A broker that is scripted, frame by frame: for clients and what may disappoint them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kafka_messages import CATALOG
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS

SPOKEN = [{"api_key": 18, "min_version": 0, "max_version": 4}, {"api_key": 3, "min_version": 0, "max_version": 12}]
NODES: dict[str, Any] = {"brokers": [], "cluster_id": "c", "controller_id": 1, "topics": []}

Script = Callable[[int, int, int], bytes | None]  # key, version, correlation id -> the answer's frame; None: hang up


def frame(key: int, version: int, correlation: int, values: dict[str, Any]) -> bytes:
    parts = CATALOG[key].response.frame({"correlation_id": correlation, **values}, version)
    return b"".join(bytes(part) for part in parts)


def introduce(key: int, version: int, correlation: int) -> bytes:
    assert key == API_VERSIONS.key
    return frame(key, version, correlation, {"error_code": 0, "api_keys": SPOKEN})


def ask(script: Script, work: Callable[[Address], Awaitable[Any]]) -> Any:
    """Run `work` against a server that answers ApiVersions properly first, and everything else as `script` says."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                request = await reader.readexactly(size)
                key, version = (int.from_bytes(request[at : at + 2], "big") for at in (0, 2))
                answer = script(key, version, int.from_bytes(request[4:8], "big"))
                if answer is None:
                    break
                writer.write(answer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    async def main() -> Any:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            return await work(Address("127.0.0.1", server.sockets[0].getsockname()[1]))

    return asyncio.run(main())
