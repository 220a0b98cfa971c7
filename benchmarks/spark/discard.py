"""A broker that says it has stored what it has thrown away: what a writer reaches at most.

Run with the port it shall listen on. It knows every topic there is, with two partitions, and answers in the order
of the requests.
"""

import asyncio
import itertools
import sys
from collections import Counter
from typing import Any, cast

import uvloop

from korvet_fast._native import Frames
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS, METADATA
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID

PARTITIONS = 2
LARGEST = 1 << 27  # bytes of a request
ELEMENTS = 100_000
MESSAGES = {message.key: message for message in (API_VERSIONS, METADATA, PRODUCE, INIT_PRODUCER_ID)}
UNSUPPORTED_VERSION = 35


class Answers(asyncio.Protocol):
    """One connection. `ends`: by topic and partition, shared by all; and so are the ids of producers."""

    ids = itertools.count(1)

    def __init__(self, port: int, ends: Counter[tuple[str, int]]) -> None:
        self.port = port
        self.ends = ends
        self.frames = Frames(LARGEST)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        for frame in self.frames.feed(data):
            key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
            message = MESSAGES[key]
            if version > message.highest:  # KIP-511: said in version 0
                values = {"correlation_id": int.from_bytes(frame[4:8], "big"), "error_code": UNSUPPORTED_VERSION}
                answer = message.response.encode(values | {"api_keys": self.speaks()}, 0)
            else:
                request = message.request.decode(frame, version, ELEMENTS)
                values = {"correlation_id": request["correlation_id"], **self.answer(key, request)}
                answer = message.response.encode(values, version)
            self.transport.writelines([len(answer).to_bytes(4, "big"), answer])

    def answer(self, key: int, request: dict[str, Any]) -> dict[str, Any]:
        if key == API_VERSIONS.key:
            return {"error_code": 0, "api_keys": self.speaks()}
        if key == INIT_PRODUCER_ID.key:
            return {"error_code": 0, "producer_id": next(self.ids), "producer_epoch": 0}
        if key == METADATA.key:
            brokers = [{"node_id": 1, "host": "127.0.0.1", "port": self.port}]
            topics = [self.topic(topic["name"]) for topic in request["topics"] or ()]
            return {"brokers": brokers, "cluster_id": "discard", "controller_id": 1, "topics": topics}
        return {"responses": [self.stored(topic) for topic in request["topic_data"]]}

    def speaks(self) -> list[dict[str, int]]:
        return [
            {"api_key": message.key, "min_version": message.lowest, "max_version": message.highest}
            for message in MESSAGES.values()
        ]

    def topic(self, name: str) -> dict[str, Any]:
        alive = {"error_code": 0, "leader_id": 1, "leader_epoch": 0, "replica_nodes": [1], "isr_nodes": [1]}
        partitions = [{"partition_index": index, **alive} for index in range(PARTITIONS)]
        return {"error_code": 0, "name": name, "partitions": partitions}

    def stored(self, topic: dict[str, Any]) -> dict[str, Any]:
        rows = []
        for partition in topic["partition_data"]:
            place = topic["name"], partition["index"]
            rows.append({"index": place[1], "error_code": 0, "base_offset": self.ends[place]})
            self.ends[place] += int.from_bytes(partition["records"][57:61], "big")  # as many as the batch says
        return {"name": topic["name"], "partition_responses": rows}


async def serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    ends: Counter[tuple[str, int]] = Counter()
    server = await loop.create_server(lambda: Answers(port, ends), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
