"""The floor: a uvloop protocol that cuts frames and answers, and does nothing else. It checks and stores nothing.

What it reaches is what one Python event loop can reach at most; the distance to it is the room that is left.
"""

import asyncio
import sys
from functools import partial

import uvloop

from benchmarks.peers.answers import PRODUCE, Answers, Topic, find_batch


class BareLoop(Answers):
    """One connection."""

    def answer(self, key: int, correlation: int, start: int, end: int) -> bytes:
        if key != PRODUCE:
            return super().answer(key, correlation, start, end)
        batch = find_batch(self.received, start)
        base = self.topic.end
        self.topic.end += batch.records
        return batch.answer(correlation, base)


async def serve(port: int) -> None:
    """Until killed."""
    server = await asyncio.get_running_loop().create_server(partial(BareLoop, Topic()), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
