"""A connection cuts its bytes as its dialect says: here into lines, whose length nobody announces."""

from contextlib import closing

import pytest

from korvet_fast.wire.dialect import FirstRequestLimits, Frames, Reply
from net_scene import Scene, run, scene
from receive_queue import ReceiveQueue
from toy_dialect import ToyDialect, ToySession


class Lines:
    """Cuts a stream at its newlines."""

    announced = 0

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def pending(self) -> int:
        return len(self._rest)

    def feed(self, data: bytes | bytearray | memoryview, most: int, /) -> list[bytearray]:
        self._rest += data
        *lines, self._rest = self._rest.split(b"\n", most)
        return lines

    def rest(self) -> memoryview | None:
        return None

    def advance(self, count: int, /) -> bytearray | None:
        raise AssertionError("there is no place in a line to read into")


class LineSession(ToySession):
    async def handle(self, frame_: bytearray) -> Reply:
        (reply,) = await super().handle(frame_)
        return [bytes(reply[4:]) + b"\n"]


class LineDialect(ToyDialect):
    """The commands of the toy dialect, a line each."""

    def frames(self) -> Frames:  # type: ignore[override]
        return Lines()

    def session(self, peer: str, client: object = None) -> ToySession:
        return LineSession(self)


async def talk(here: Scene, *pieces: bytes) -> bytes:
    """The answer to a peer that sends these pieces, one after the other, and closes its sending half."""
    peer = await here.connect()
    with closing(ReceiveQueue(peer.writer.get_extra_info("socket"))) as queue:
        sent = 0
        for piece in pieces:
            peer.writer.write(piece)
            sent += len(piece)
            await queue.empty(sent)
    peer.writer.write_eof()
    return await peer.ended()


def test_lines_are_answered_in_their_order_however_they_are_cut() -> None:
    async def scenario() -> None:
        async with scene(dialect=LineDialect()) as here:
            assert (
                await talk(here, b"echo o", b"ne\necho two\nec", b"ho three\n") == b"echo one\necho two\necho three\n"
            )
            many = [b"echo %d" % number for number in range(1000)]  # more than are cut at a time
            assert (await talk(here, b"\n".join(many) + b"\n")).split() == b" ".join(many).split()

    run(scenario)


def test_the_first_line_is_limited_before_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        dialect = LineDialect()
        dialect.first_request = FirstRequestLimits(20)
        async with scene(dialect=dialect) as here:
            assert await talk(here, b"echo " + bytes(20)) == b""
            assert await talk(here, b"echo small\n", b"echo " + bytes(100), b"\n") != b""
        assert dialect.started == [b"echo small", b"echo " + bytes(35)]

    run(scenario)
    assert "its first request has 25 bytes, and may have 20" in caplog.text
