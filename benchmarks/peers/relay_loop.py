"""The floor over Redis: a uvloop protocol that cuts frames, forwards each batch on one pipelined connection, answers.

Three ways: `a`, a batch is one XADD; `c`, each record is one, and nothing else; `bpv`, the batches of a turn of the
loop are one transaction, with the broker's own guard and close, each batch checked and stamped: the least that an
honest broker does. A Fetch is answered with what one XRANGE gives. What else a broker does is left out: no time limits,
nothing is tried again, and that Redis stored everything is counted after the run.
"""

import asyncio
import struct
import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import uvloop

from benchmarks.peers.answers import CREATE_TOPICS, FETCH, PRODUCE, Answers, Topic, Wanted, find_batch, find_wanted
from korvet_fast._native import (
    Replies,
    assign_offsets,
    decode_batches,
    decode_records,
    encode_append,
    encode_command_parts,
    validate_batch,
)
from korvet_fast.cli.memory import keep_freed
from korvet_fast.store.redis.connection.pipeline import REPLY_LIMIT, WINDOW
from korvet_fast.store.redis.stream.ids import pack_id
from korvet_fast.store.redis.stream.layout import EXPANDED
from korvet_fast.store.redis.stream.scripts import CLOSE, GUARD
from korvet_fast.types import Buffer

KEY = "korvet:t:0"  # where the broker's is, too
STATE = "korvet:t:0:state"
_TOKEN = "relay"  # the fencing token
_BITS = 10  # of the sequence in the id of a record's entry
Command = Sequence[Buffer | str | int]
Answered = Callable[[Buffer], object]


class Pipeline(asyncio.BufferedProtocol):
    """The connection to Redis: replies come in the order of the commands."""

    def __init__(self) -> None:
        self._window = memoryview(bytearray(WINDOW))
        self._replies = Replies(REPLY_LIMIT, raw=True)
        self._waiting: deque[Answered] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self, parts: Sequence[Buffer], replies: int, answered: Answered) -> None:
        """Send packed commands, which get so many replies in all; these come in one buffer."""
        self._replies.join(replies)
        self._waiting.append(answered)
        self._transport.writelines(parts)

    def get_buffer(self, _: int) -> memoryview:
        return self._window

    def buffer_updated(self, count: int) -> None:
        for reply in self._replies.feed(self._window[:count]):
            self._waiting.popleft()(reply)


class Way:
    """A batch as one XADD."""

    bits = 0  # of an id, as in the broker's layout

    def __init__(self, redis: Pipeline) -> None:
        self.redis = redis
        self.per_entry = 1  # bytes of a batch that an entry is

    def begin(self) -> None:
        """The topic is new."""
        commands: list[Command] = [("DEL", KEY), ("HSET", STATE, "fence", _TOKEN, "end", 0)]
        self.redis.send(encode_command_parts(commands), len(commands), lambda _: None)

    def put(self, batch: bytearray, base: int, count: int, answered: Answered) -> None:
        """Store a batch of so many records at an offset."""
        self.per_entry = len(batch)
        struct.pack_into(">q", batch, 0, base)  # or it could not be fetched
        self.redis.send(encode_command_parts([("XADD", KEY, pack_id(base, 0), "batch", batch)]), 1, answered)

    def read(self, wanted: Wanted, answered: Answered) -> None:
        """Ask for as many entries as were put into so many bytes."""
        most = max(1, wanted.max_bytes // self.per_entry)
        command = ("XRANGE", KEY, pack_id(self.first(wanted.offset), self.bits), "+", "COUNT", most)
        self.redis.send(encode_command_parts([command]), 1, answered)

    def first(self, offset: int) -> int:
        """The offset that the store has for one of the topic."""
        return offset

    def unpack(self, reply: Buffer, wanted: Wanted) -> Sequence[Buffer]:
        """The batches of a reply to XRANGE."""
        return decode_batches(reply, 0, wanted.offset, wanted.max_bytes)[0]


class EachRecord(Way):
    """Each record as one XADD, in the form that the broker gives it."""

    bits = _BITS

    def put(self, batch: bytearray, base: int, count: int, answered: Answered) -> None:
        self.per_entry = max(1, len(batch) // count)
        self.redis.send([encode_append(KEY, batch, self.first(base), _BITS, EXPANDED)], count, answered)

    def first(self, offset: int) -> int:
        return offset + 1  # no id is 0-0

    def unpack(self, reply: Buffer, wanted: Wanted) -> Sequence[Buffer]:
        batches, *_ = decode_records(reply, _BITS, self.first(wanted.offset), wanted.max_bytes, 0, 0)
        assign_offsets(batches, wanted.offset, 0, None, None)
        return [batches]


class Transactions(Way):
    """All batches of a turn as one transaction, which Redis refuses if the log ends elsewhere or is not ours."""

    def __init__(self, redis: Pipeline) -> None:
        super().__init__(redis)
        self._end = self._size = self._number = self._time = 0
        self._commands: list[Command] = []
        self._answered: list[Answered] = []

    def begin(self) -> None:
        super().begin()
        self._end = self._size = self._number = 0

    def put(self, batch: bytearray, base: int, count: int, answered: Answered) -> None:
        self.per_entry, _, self._time, _, _ = validate_batch(batch, EXPANDED)
        assign_offsets(batch, base, 0, None, None)
        if not self._commands:
            asyncio.get_running_loop().call_soon(self._commit, base)
        self._commands.append(("XADD", KEY, pack_id(base, 0), "batch", batch))
        self._answered.append(answered)
        self._end = base + count
        self._size += len(batch)
        self._number += 1

    def _commit(self, before: int) -> None:
        state = (2, KEY, STATE, _TOKEN, before)
        fields = ("end", self._end, "size", self._size, "count", self._number, "time", self._time)
        commands: list[Command] = [("MULTI",), ("EVAL", GUARD, *state)]
        commands += [*self._commands, ("EVAL", CLOSE, *state, *fields), ("EXEC",)]
        answered, self._answered, self._commands = self._answered, [], []
        self.redis.send(encode_command_parts(commands), len(commands), partial(_end_all, answered))


def _end_all(answered: list[Answered], reply: Buffer) -> None:
    for each in answered:
        each(reply)


WAYS = {"a": Way, "bpv": Transactions, "c": EachRecord}


class RelayLoop(Answers):
    """One connection. Produces and fetches are answered when Redis has answered."""

    def __init__(self, topic: Topic, way: Way) -> None:
        super().__init__(topic)
        self._way = way

    def answer(self, key: int, correlation: int, start: int, end: int) -> bytes:
        if key == PRODUCE:
            found = find_batch(self.received, start)
            base = self.topic.end
            self.topic.end += found.records
            batch = self.received[found.start : found.end]
            self._way.put(batch, base, found.records, partial(self._stored, found.answer(correlation, base)))
            return b""
        if key == FETCH:
            wanted = find_wanted(self.received, start)
            self._way.read(wanted, partial(self._found, correlation, wanted))
            return b""
        if key == CREATE_TOPICS:
            self._way.begin()
        return super().answer(key, correlation, start, end)

    def _stored(self, answer: bytes, _: Buffer) -> None:
        self.transport.write(struct.pack(">i", len(answer)) + answer)

    def _found(self, correlation: int, wanted: Wanted, reply: Buffer) -> None:
        batches = self._way.unpack(reply, wanted)
        size = sum(map(len, batches))
        before, behind = wanted.answer(correlation, size, self.topic.end)
        length = struct.pack(">i", len(before) + size + len(behind))
        self.transport.writelines([length + before, *batches, behind])


async def serve(name: str, port: int, redis_port: int) -> None:
    """Until killed."""
    keep_freed()  # as the broker does: half of a fetch would be page faults
    loop = asyncio.get_running_loop()
    _, redis = await loop.create_connection(Pipeline, "127.0.0.1", redis_port)
    server = await loop.create_server(partial(RelayLoop, Topic(), WAYS[name](redis)), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
