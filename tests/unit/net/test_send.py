"""Replies on their way to the peer: the slices of a long one, over a transport of the test's own."""

from typing import Any, cast

import pytest

from korvet_fast.net.pool import Pool
from korvet_fast.net.send import SLICE, TLS_SLICE, Send, Slot
from korvet_fast.types import Buffer

MIB = 1 << 20


class Transport:
    """Takes everything at once. `taken`: what each call handed over."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def writelines(self, parts: list[Buffer]) -> None:
        self.taken.append(b"".join(parts))

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


class Scene:
    """One connection's replies. `turns`: how often it asked for a turn of the loop."""

    def __init__(self, *, encrypted: bool = False) -> None:
        self.pool = Pool(128 * MIB, lambda: None)
        self.account = self.pool.open("here")
        self.turns = 0
        self.send = Send(self.pool, self.account, encrypted=encrypted)
        self.transport = Transport()
        self.send.open(cast(Any, self.transport), self._have_turn)

    def _have_turn(self) -> None:
        self.turns += 1

    def reply(self, data: bytes) -> None:
        slot = Slot()
        slot.reply, slot.size = [data], len(data)
        slot.charges = self.pool.count(self.account, len(data))
        self.send.slots.append(slot)
        self.send.send(closing=False)


@pytest.mark.parametrize(("encrypted", "size"), [(False, SLICE), (True, TLS_SLICE)])
def test_a_peer_that_takes_all_at_once_gets_one_slice_a_turn(encrypted: bool, size: int) -> None:
    scene = Scene(encrypted=encrypted)
    data = bytes(range(256)) * (5 * SLICE // 256)
    scene.reply(data)
    given, left = 1, len(data) - size
    while left > 0:
        assert [len(each) for each in scene.transport.taken] == given * [size]
        assert scene.turns == given and scene.send.busy and scene.account.held == len(data)
        scene.send.go_on()
        given, left = given + 1, left - size
    assert b"".join(scene.transport.taken) == data
    assert scene.turns == given - 1 and not scene.send.busy and scene.account.held == 0


def test_what_fits_into_one_slice_waits_for_no_turn() -> None:
    scene = Scene()
    scene.reply(bytes(SLICE))
    assert [len(each) for each in scene.transport.taken] == [SLICE] and scene.turns == 0 and not scene.send.busy


def test_a_later_reply_waits_for_the_whole_of_an_earlier_one() -> None:
    scene = Scene()
    scene.reply(bytes(2 * SLICE))
    scene.reply(b"small")
    assert len(scene.transport.taken) == 1
    scene.send.go_on()
    scene.send.send(closing=False)
    assert scene.transport.taken[2:] == [b"small"]


def test_a_peer_that_takes_nothing_gets_no_turn_until_it_does() -> None:
    scene = Scene()
    scene.reply(bytes(3 * SLICE))
    scene.send.pause(1.0)
    scene.send.go_on()  # the turn that it asked for
    assert (len(scene.transport.taken), scene.turns) == (1, 1)
    scene.send.resume()
    scene.send.resume()
    assert (len(scene.transport.taken), scene.turns) == (1, 2), "once, however often the transport says so"
    scene.send.go_on()
    scene.send.go_on()
    assert b"".join(scene.transport.taken) == bytes(3 * SLICE) and not scene.send.busy


def test_what_was_dropped_is_not_sent_in_the_turn_it_asked_for() -> None:
    scene = Scene()
    scene.reply(bytes(3 * SLICE))
    scene.send.drop()
    scene.send.go_on()
    assert len(scene.transport.taken) == 1 and scene.account.held == 0 and not scene.send.busy
