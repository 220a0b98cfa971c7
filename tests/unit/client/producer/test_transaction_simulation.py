"""Commits and aborts under a virtual clock, in histories of failures: what is committed is seen whole, nothing else.

The same 300 each time; `KORVET_TEST_SIMULATIONS=5000` (`make simulate`) draws new ones.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korvet_fast.client.producer import DeliveryFailed, Message, Outcome, ProducerFenced, TransactionError
from korvet_fast.client.producer.transaction_state import TransactionState
from korvet_fast.client.protocol.errors import ClientError
from producer_invariants import check
from producer_messages import SentMessage
from producer_transactions_world import Fate, TransactionWorld
from producer_world import Fault

LONG = os.environ.get("KORVET_TEST_SIMULATIONS")
EXAMPLES = int(LONG or "300")
TOPICS = ("t", "u")
DAY = 86_400.0
LATE = 120.0  # seconds; by then everything that is late has come

configs = st.fixed_dictionaries(
    {},
    optional={
        "max_in_flight_requests_per_connection": st.integers(1, 5),
        "linger_ms": st.sampled_from([0, 5, 200]),
        "batch_num_messages": st.sampled_from([0, 1, 3]),
        "retries": st.integers(1, 4),
        "delivery_timeout_ms": st.sampled_from([3_000, 30_000]),
        "request_timeout_ms": st.sampled_from([500, 5_000]),
        "buffer_memory": st.sampled_from([8_000, 1 << 24]),
    },
)


@dataclass
class Attempt:
    """A transaction as its caller saw it. `end`: True: committed, False: not, None: nobody knows."""

    sent: list[SentMessage] = field(default_factory=list)
    end: bool | None = None


class Caller:
    """Sends in transactions, and does after each failure what the documentation says."""

    def __init__(self, world: TransactionWorld, random: Random, trouble: float) -> None:
        self.world = world
        self.random = random
        self.trouble = trouble  # how likely a step is one
        self.attempts: list[Attempt] = []
        self.fenced = False

    async def work(self, times: int) -> None:
        for _ in range(times):
            try:
                await self._one()
            except ProducerFenced:
                self.fenced = True
                return

    async def _one(self) -> None:
        transactions = self.world.transactions
        while transactions.state.state is TransactionState.NEW:
            with suppress(ClientError):
                await transactions.init()
        transactions.state.apply("begin")
        attempt = Attempt()
        self.attempts.append(attempt)
        try:
            await self._send(attempt)
            if self.random.random() < 0.7:
                await transactions.commit()
                attempt.end = True
                return
        except TransactionError as error:
            if isinstance(error, ProducerFenced):
                attempt.end = None if transactions.state.failure is None else False
                raise
            if error.outcome is Outcome.UNKNOWN:
                return
        attempt.end = False
        with suppress(TransactionError):  # then `init` comes next
            await self._abort()

    async def _abort(self) -> None:
        transactions = self.world.transactions
        try:
            await transactions.abort()
        except TransactionError as error:
            if isinstance(error, ProducerFenced):
                raise
            assert error.outcome is Outcome.UNKNOWN
            assert transactions.state.state is TransactionState.NEW

    async def _send(self, attempt: Attempt) -> None:
        for _ in range(self.random.randrange(6)):
            for _ in range(self.random.randint(1, 8)):
                self.world.transactions.state.check_open()
                with suppress(DeliveryFailed):
                    attempt.sent.append(self._send_one())
            self._trouble()
            await self.world.sleep(self.random.choice([0.0, 0.001, 0.01, 1.0]))

    def _send_one(self) -> SentMessage:
        world = self.world
        number = len(world.sent)
        message = Message(self.random.choice(TOPICS), b"%d" % number, partition=self.random.randrange(3), timestamp=1)
        sent = world.messages.send(message, world.now, self.random.random() < 0.5)
        world.sent.append(sent)
        return sent

    def _trouble(self) -> None:
        random, world = self.random, self.world
        if random.random() >= self.trouble:
            return
        match random.randrange(6):
            case 0:
                world.faults.extend(random.choices(list(Fault), k=random.randint(1, 4)))
            case 1:
                world.fates.extend(random.choices(list(Fate), k=random.randint(1, 3)))
            case 2:
                node = random.randrange(3)
                world.soon(lambda: world.cut(node))
            case 3:
                world.cluster.leaders[random.choice(TOPICS), random.randrange(3)] = random.randrange(3)
            case 4:
                if world.sent:
                    world.sent[-1].delivery.cancel()  # type: ignore[union-attr]
            case _:
                if random.random() < 0.1:
                    world.coordinator.init()


def finish(world: TransactionWorld) -> None:
    """Let the callers come to their ends, and everything that is late arrive."""
    world.pump()
    end = world.now + DAY
    while not world.idle:
        assert world.now < end, (world.transactions.state.state, world.transactions.state.failure)
        world.run(1.0)
    world.heal()
    world.fates.clear()
    world.pipeline.close()
    world.run_until_ended(world.config.delivery_timeout + world.config.request_timeout + 10)
    world.run(LATE)
    world.coordinator.init()  # whoever comes next ends what was left open


@settings(max_examples=EXAMPLES, derandomize=LONG is None)
@given(st.integers(0, 1 << 32), configs, st.sampled_from([0.1, 0.5, 0.9]))
def test_what_is_committed_is_seen_whole_and_nothing_else(seed: int, config: dict[str, Any], trouble: float) -> None:
    random = Random(seed)
    world = TransactionWorld(seed, TOPICS, **{"max_request_size": 1000, "max_block_ms": 2000, **config})
    caller = Caller(world, random, trouble)
    world.start(caller.work(random.randint(1, 12)))
    finish(world)
    check(world)
    check_attempts(world, caller.attempts)


def check_attempts(world: TransactionWorld, attempts: list[Attempt]) -> None:
    seen = {where: world.transactional.committed(where) for where in world.cluster.logs}
    owner = {
        value: number
        for where, log in world.cluster.logs.items()
        for value, number in zip(log.values, world.transactional.owners[where], strict=True)
    }
    for attempt in attempts:
        accepted = [each for each in attempt.sent if each.outcome is Outcome.DELIVERED]
        visible = [each for each in attempt.sent if each.values[0] in seen[each.topic, each.partition]]
        if attempt.end:
            withdrawn = [each for each in attempt.sent if each not in accepted]
            assert {each.outcome for each in withdrawn} <= {Outcome.NOT_WRITTEN}, "withdrawn by the caller"
            assert visible == accepted, "what is committed is seen whole"
        elif attempt.end is False:
            assert visible == [], "nothing of what is not committed is seen"
        else:
            assert visible in ([], accepted), "all of it, or nothing"
        numbers = {owner[each.values[0]] for each in attempt.sent if each.values[0] in owner}
        assert len(numbers) <= 1, "transactions are never mixed"


@pytest.mark.parametrize("fate", list(Fate))
@pytest.mark.parametrize("where", ["init", "add", "end"])
def test_each_request_of_a_commit_meets_each_fate(fate: Fate, where: str) -> None:
    world = TransactionWorld(1, TOPICS)
    world.fates.extend([Fate.NONE] * ["init", "add", "end"].index(where) + [fate])
    caller = Caller(world, Random(2), 0.0)
    world.start(caller.work(6))
    finish(world)
    check(world)
    check_attempts(world, caller.attempts)
    ends = [attempt.end for attempt in caller.attempts]
    assert ends[-1] is not None, "it goes on"
    assert True in ends


def test_a_producer_that_was_fenced_commits_nothing() -> None:
    world = TransactionWorld(1, TOPICS)
    caller = Caller(world, Random(3), 0.0)
    world.start(caller.work(1000))
    world.run(1.0)
    world.coordinator.init()
    seen = sum(world.coordinator.ends.values())
    finish(world)
    assert caller.fenced
    assert sum(world.coordinator.ends.values()) == seen
    check(world)
    check_attempts(world, caller.attempts)
