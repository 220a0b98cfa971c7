"""A session of core: its waiters are answered when the connection goes, its works beside the loop take turns."""

import asyncio
import time
from pathlib import Path
from threading import Event
from typing import Any

from core_world import run_broker
from korvet_fast.core.client_session import ClientSession
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.fair_queue import TURN, FairQueue, Turns

_MANY = 20


class Heavy:
    """A request that waits, and that takes a whole turn to be ended. `ended_in`: the turns of the loop, so far."""

    def __init__(self, turns: list[int], ended_in: list[int]) -> None:
        self._turns = turns
        self._ended_in = ended_in

    def wake(self) -> None:
        until = time.monotonic() + TURN
        while time.monotonic() < until:
            pass
        self._ended_in.append(len(self._turns))


def test_clients_that_go_at_once_do_not_have_all_their_requests_ended_in_one_turn_of_the_loop(tmp_path: Path) -> None:
    async def scenario() -> None:
        workers, queue = FairExecutor(1, "check"), FairQueue()
        turns: list[int] = []
        ended_in: list[int] = []
        try:
            async with run_broker(tmp_path) as world:
                sessions = [ClientSession(world.broker, workers, None, queue) for _ in range(_MANY)]
                for session in sessions:
                    session.delayed.add(Heavy(turns, ended_in))
                for session in sessions:
                    session.close()
                    assert session.closed
                while len(ended_in) < _MANY:
                    turns.append(len(turns))
                    await asyncio.sleep(0)
                assert len(set(ended_in)) >= _MANY // 2
        finally:
            workers.shutdown()

    asyncio.run(scenario())


class Visitor:
    """As much of a connection as a session needs to have work done beside the loop."""

    def __init__(self, address: object, queue: FairQueue) -> None:
        self.address = address
        self.turns = Turns(queue)


def test_works_of_all_connections_of_an_address_take_one_turn_together(tmp_path: Path) -> None:
    async def scenario() -> None:
        workers, queue = FairExecutor(1, "check"), FairQueue()
        gate = Event()
        done: list[str] = []
        try:
            async with run_broker(tmp_path) as world:

                def connect(address: object) -> ClientSession:
                    visitor: Any = Visitor(address, queue)
                    return ClientSession(world.broker, workers, visitor)

                first, here, there = object(), object(), object()
                held = connect(first).offload(gate.wait, 120.0)
                many = [connect(there).offload(done.append, "many") for _ in range(_MANY)]
                one = connect(here).offload(done.append, "one")
                gate.set()
                await asyncio.gather(held, one, *many)
                assert done.index("one") <= 1
        finally:
            workers.shutdown()

    asyncio.run(scenario())


def test_permissions_are_a_principals_and_are_kept_while_the_principal_is_named_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        workers = FairExecutor(1, "check")
        try:
            async with run_broker(tmp_path, "authorizer=acl") as world:
                session = ClientSession(world.broker, workers)
                session.principal = "User:ann"
                found = session.find_permissions()
                assert found is not None
                session.principal = "User:ann"
                assert session.permissions is found  # with all that was decided
                session.principal = "User:ben"
                other = session.find_permissions()
                assert other is not None
                assert other.principal == "User:ben"
        finally:
            workers.shutdown()

    asyncio.run(scenario())
