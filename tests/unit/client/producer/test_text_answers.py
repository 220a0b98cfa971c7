"""What a text broker answers, or does not, and what the producer says of each message then."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import Delivery, DeliveryFailed, Outcome
from text_lines_peer import CLOSE, Answer, ScriptedTextBroker, refused, stored

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
MANY = 10


def outcomes(run: Run, answer: Answer, **settings: Any) -> tuple[list[Delivery], ScriptedTextBroker]:
    """Ten messages of one turn of the loop, so of one request, and how they ended."""
    broker = ScriptedTextBroker(answer)

    async def work() -> list[Delivery]:
        async with broker.run() as address:
            quick = {"delivery_timeout_ms": 60_000, "retry_backoff_ms": 10, **settings}
            async with AsyncProducer(address, **quick) as p:
                sent = [p.send("t", b"%d" % n) for n in range(MANY)]
                await asyncio.gather(*sent, return_exceptions=True)
                counts = p.metrics()
                assert (counts.open, counts.buffer_bytes, counts.accepted) == (0, 0, MANY)
            return sent

    found: list[Delivery] = run(work)
    return found, broker


def told(sent: list[Delivery]) -> list[Outcome | None]:
    return [each.outcome for each in sent]


D, N, U = Outcome.DELIVERED, Outcome.NOT_WRITTEN, Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (b"BAD_REQUEST", N),
        (b"UNKNOWN_TOPIC", N),
        (b"UNKNOWN_COMMAND", N),
        (b"UNAUTHORIZED", N),
        (b"REPLICATION_TIMEOUT", U),
        (b"NOT_LEADER", U),
        (b"STORAGE_ERROR", U),
        (b"SOMETHING_NEW", U),
    ],
)
def test_each_line_has_an_answer_of_its_own(run: Run, code: bytes, outcome: Outcome) -> None:
    sent, broker = outcomes(run, lambda line, n: refused(line, code) if n in (3, 4, 7) else stored(line, n))
    assert told(sent) == [outcome if n in (3, 4, 7) else D for n in range(MANY)]
    assert [each.result().offset for n, each in enumerate(sent) if n not in (3, 4, 7)] == [0, 1, 2, 5, 6, 8, 9]
    error = sent[3].exception()
    assert str(error) == f"topic 't': a sentence ({code.decode()})"
    assert len(broker.lines) == MANY, "nothing is sent again"


@pytest.mark.parametrize("at", [0, 1, 9])
def test_a_connection_that_ends_leaves_the_rest_unknown(run: Run, at: int) -> None:
    sent, broker = outcomes(run, lambda line, n: CLOSE if n == at else stored(line, n))
    assert told(sent) == [D] * at + [U] * (MANY - at)
    assert len(broker.lines) == at + 1, "nothing is sent again"


def test_an_answer_that_never_comes_is_unknown(run: Run) -> None:
    sent, _ = outcomes(run, lambda line, n: None if n > 5 else stored(line, n), request_timeout_ms=3000)
    assert told(sent) == [D] * 6 + [U] * 4
    assert "did not answer PRODUCE within 3 s" in str(sent[9].exception())


@pytest.mark.parametrize(
    "lie",
    [
        b"V1|99|OK|partition=0 offset=5 hw=6\n",
        b"V1|0|OK|partition=0 offset=5 hw=6\n",
        b"V1|4|OK|partition=0 offset=-5 hw=6\n",
        b"V1|4|OK|\n",
        b"V2|4|OK|partition=0 offset=5 hw=6\n",
        b"V1|99|ERR|BAD_REQUEST|x\n",
        b"HTTP/1.1 400 Bad Request\n",
        b"\n",
        b"x" * 100_000,
        b"V1|4|OK|partition=0 offset=99999999999999999999999 hw=6\n",
        b"V1|4|OK|partition=0 offset=9223372036854775808 hw=6\n",
        b"V1|4|OK|partition=2147483647 offset=5 hw=6\n",
        b"V1|4|OK|partition=9999999999 offset=5 hw=6\n",
    ],
    ids=str,
)
def test_an_answer_that_is_none_is_not_believed(run: Run, lie: bytes) -> None:
    def answer(line: bytes, number: int) -> bytes:
        return lie if number == 3 else stored(line, number)

    sent, _ = outcomes(run, answer, receive_message_max_bytes=2000)
    assert told(sent) == [D] * 3 + [U] * 7
    assert "does not answer as the text protocol does" in str(sent[9].exception())


def test_a_line_that_is_too_long_is_refused_and_what_is_behind_it_is_unknown(run: Run) -> None:
    def answer(line: bytes, number: int) -> bytes:
        return b"V1|0|ERR|BAD_REQUEST|line too long\n" if number == 3 else CLOSE if number > 3 else stored(line, number)

    sent, _ = outcomes(run, answer)
    assert told(sent) == [D] * 3 + [N] + [U] * 6


def test_answers_that_nobody_asked_for_end_the_connection(run: Run) -> None:
    sent, broker = outcomes(run, lambda line, n: stored(line, n) * (2 if n == MANY - 1 else 1))
    assert told(sent) == [D] * MANY
    assert broker.connections == 1


@pytest.mark.parametrize("policy", ["fail", "stop", "continue"])
def test_what_waits_behind_a_failure_follows_on_failure(run: Run, policy: str) -> None:
    broker = ScriptedTextBroker(lambda line, n: refused(line, b"UNKNOWN_TOPIC") if n == 1 else stored(line, n))

    async def work() -> list[Outcome | None]:
        async with broker.run() as address, AsyncProducer(address, batch_num_messages=3, on_failure=policy) as p:
            sent = [p.send("t", b"%d" % n) for n in range(6)]
            await asyncio.gather(*sent, return_exceptions=True)
            if policy == "stop":
                with pytest.raises(DeliveryFailed, match="topic 't' takes no messages since one failed"):
                    p.send("t", b"late")
                p.resume("t")
            assert (await p.send("t", b"after")).offset >= 0
            return told(sent)

    assert run(work) == [D, N, D] + ([D] * 3 if policy == "continue" else [N] * 3)


def test_without_a_broker_messages_wait_and_expire_unwritten(run: Run) -> None:
    async def work() -> None:
        async with ScriptedTextBroker().run() as address:
            pass  # it has gone
        async with AsyncProducer(address, delivery_timeout_ms=300, request_timeout_ms=300) as p:
            with pytest.raises(DeliveryFailed, match="not delivered within") as caught:
                await p.send("t", b"x")
            assert caught.value.outcome is Outcome.NOT_WRITTEN

    run(work)


def test_the_pipeline_goes_on_after_a_lost_connection(run: Run) -> None:
    broker = ScriptedTextBroker(lambda line, n: CLOSE if n == 0 else stored(line, n))

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, retry_backoff_ms=10) as p:
            with pytest.raises(DeliveryFailed) as caught:
                await p.send("t", b"lost")
            assert caught.value.outcome is Outcome.UNKNOWN
            assert [(await p.send("t", b"%d" % n)).offset for n in range(3)] == [1, 2, 3]

    run(work)
    assert broker.connections == 2
