"""The floor: a uvloop protocol that cuts frames and answers, and does nothing else. It checks and stores nothing.

What it reaches is what one Python event loop can reach at most; the distance to it is the room that is left.
Answers only what the load generator sends, at the generator's versions, for one topic of one partition.
"""

import asyncio
import struct
import sys
from typing import cast

import uvloop

_PREFIX = struct.Struct(">ihhi")
_RECORDS_AT = 57  # of a batch's header: how many records it holds


class Answers(asyncio.Protocol):
    """One connection; the end offset is shared by all, and whether the topic is there."""

    end = 0
    error_code = 0  # UNKNOWN_TOPIC_OR_PARTITION once it is deleted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        self.received = bytearray()

    def data_received(self, data: bytes) -> None:
        self.received += data
        answers: list[bytes] = []
        at = 0
        while len(self.received) - at >= _PREFIX.size:
            size, key, _version, correlation = _PREFIX.unpack_from(self.received, at)
            if len(self.received) - at < 4 + size:
                break
            answer = self.answer(key, correlation, at, at + 4 + size)
            answers += (struct.pack(">i", len(answer)), answer)
            at += 4 + size
        del self.received[:at]
        if answers:
            self.transport.write(b"".join(answers))

    def answer(self, key: int, correlation: int, start: int, end: int) -> bytes:
        """The answer to the request that lies from `start` to `end` in what was received."""
        if key == 0:
            return self.produced(correlation, start)
        if key in (19, 20):
            Answers.error_code = 0 if key == 19 else 3
        topic = struct.pack(">ih1s", 1, 1, b"t")
        answers = {
            2: struct.pack(">ii", correlation, 0)
            + topic
            + struct.pack(">iihqqi", 1, 0, self.error_code, -1, self.end, 0),
            3: struct.pack(">iiih9sihii", correlation, 1, 0, 9, b"127.0.0.1", 0, -1, 0, 0),
            18: struct.pack(">ihi", correlation, 0, 0),
            19: struct.pack(">ii", correlation, 0) + topic + struct.pack(">hh", 0, -1),
            20: struct.pack(">ii", correlation, 0) + topic + struct.pack(">h", 0),
        }
        return answers[key]

    def produced(self, correlation: int, start: int) -> bytes:
        """Produce v9: find the batch behind the client id and the one-letter or longer topic; answer its offset."""
        received = self.received
        at = start + 14 + struct.unpack_from(">h", received, start + 12)[0] + 1 + 1
        at += 2 + 4 + 1  # acks, timeout, one topic
        name = bytes(received[at : at + received[at]])
        at += received[at] + 1 + 4  # one partition, its index
        while received[at] >= 0x80:  # the records' length, a varint
            at += 1
        base, (count,) = Answers.end, struct.unpack_from(">i", received, at + 1 + _RECORDS_AT)
        Answers.end += count
        return b"".join(
            (
                struct.pack(">ibb", correlation, 0, 2),
                name,
                struct.pack(">bihqqqbb", 2, 0, 0, base, -1, 0, 1, 0),
                struct.pack(">bbib", 0, 0, 0, 0),
            )
        )


async def serve(port: int) -> None:
    """Until killed."""
    server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
