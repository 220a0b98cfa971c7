"""What a broker refuses for good fails what waits for it at once, as Kafka's producer does; what passes is tried again.

Refusals were tried again until `delivery.timeout.ms` was over.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import DeliveryFailed, Expired, Outcome
from korvet_fast.client.producer.retry_handler import Verdict, judge
from korvet_fast.client.protocol.errors import (
    AuthenticationFailed,
    ClientError,
    ConnectionLost,
    Unreachable,
    UnsupportedVersion,
    broker_error,
    is_retriable_code,
)
from lying_broker import API_VERSIONS, FAST, INIT_PRODUCER_ID, SPOKEN, LyingBroker
from producer_invariants import check_accounts
from producer_world import ProducerWorld

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
# Kafka 4.1's table of errors (org.apache.kafka.common.protocol.Errors): codes whose exception is a RetriableException.
LAST_CODE = 133
RETRIABLE = frozenset({
    2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84, 88, 89, 100, 103, 106,
    122, 123, 133,
})  # fmt: skip
OF_GROUPS = {27, 79, 113}  # REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED, STALE_MEMBER_EPOCH: no answer to a producer
CODES = sorted({*range(-1, LAST_CODE + 1)} - {0} - OF_GROUPS)
SHORT = 5.0  # seconds of virtual time; far less than delivery.timeout.ms
LONG = 200.0
WAITS = {
    "request_timeout_ms": 60_000,
    "delivery_timeout_ms": 5_000,
    "max_block_ms": 5_000,
}  # far longer than an answer takes
SASL_AUTHENTICATION_FAILED = 58
FATAL: list[ClientError] = [
    broker_error("a user", SASL_AUTHENTICATION_FAILED),
    AuthenticationFailed("the certificate is refused"),
    UnsupportedVersion("no version"),
]
PASSING: list[ClientError] = [ConnectionLost("gone"), Unreachable("nobody listens"), ClientError("noise")]
# Kafka's producer judges these by themselves (Sender.canRetry, completeBatch, TransactionManager.canRetry).
OF_THEIR_OWN = {
    10: Verdict.TOO_LARGE,
    18: Verdict.TOO_LARGE,
    45: Verdict.OUT_OF_ORDER,
    46: Verdict.STORED,
    47: Verdict.OUT_OF_ORDER,
    59: Verdict.OUT_OF_ORDER,
}


def name(error: ClientError) -> str:
    return type(error).__name__


def see_refused(world: ProducerWorld, *, sent: int = 1) -> None:
    """All messages so far have failed for good, before their deadline, and the producer goes on."""
    world.run(SHORT)
    for message in world.sent[-sent:]:
        assert message.outcome is Outcome.NOT_WRITTEN
        assert type(message.error) is DeliveryFailed
    world.heal()
    world.cluster.refuses_ids = 0
    world.connect_error = None
    world.send("t", partition=0)
    world.run_until_ended(LONG)
    assert world.sent[-1].outcome is Outcome.DELIVERED
    check_accounts(world)


@pytest.mark.parametrize("code", CODES)
def test_codes_pass_as_kafka_says(code: int) -> None:
    assert is_retriable_code(code) is (code in RETRIABLE)


@pytest.mark.parametrize("code", CODES)
def test_a_batch_is_sent_again_as_kafka_does(code: int) -> None:
    row = {"error_code": code, "error_message": None, "base_offset": -1, "log_append_time_ms": -1}
    retried = Verdict.RETRY if code in RETRIABLE else Verdict.REFUSED
    assert judge(1, row).verdict is OF_THEIR_OWN.get(code, retried)


@pytest.mark.parametrize("code", CODES)
def test_a_producer_id_is_asked_for_again_as_kafka_does(code: int) -> None:
    world = ProducerWorld()
    world.cluster.refuses_ids = code
    world.send("t", partition=0)
    if code not in RETRIABLE:
        see_refused(world)
        return
    world.run(SHORT)
    assert world.sent[0].outcome is None
    world.cluster.refuses_ids = 0
    world.run_until_ended(LONG)
    assert world.sent[0].outcome is Outcome.DELIVERED


@pytest.mark.parametrize("policy", ["fail", "stop", "continue"])
def test_all_that_wait_for_a_producer_id_are_refused(policy: str) -> None:
    world = ProducerWorld(on_failure=policy, batch_num_messages=1)
    world.cluster.refuses_ids = 31
    for partition in (0, 0, 0, 1):
        world.send("t", partition=partition)
    world.run(SHORT)
    assert {type(each.error) for each in world.sent} == {DeliveryFailed}
    assert "a broker refused a producer id: No ACL lets this client" in str(world.sent[2].error)
    assert sorted(world.pipeline.dispatcher.topic("t").stopped) == ([0, 1] if policy == "stop" else [])
    world.pipeline.dispatcher.topic("t").stopped.clear()
    see_refused(world, sent=4)


@pytest.mark.parametrize("error", FATAL, ids=name)
def test_whoever_may_ask_no_broker_for_partitions_is_told_at_once(error: ClientError) -> None:
    world = ProducerWorld()
    world.control_fails, world.control_error = 1_000_000, error
    world.send("t")
    world.send("u")
    see_refused(world, sent=2)


@pytest.mark.parametrize("uncertain", [False, True])
@pytest.mark.parametrize("error", FATAL, ids=name)
def test_whoever_may_not_connect_to_a_leader_is_told_at_once(error: ClientError, uncertain: bool) -> None:
    world = ProducerWorld()
    if uncertain:
        world.send("t", partition=1)
        world.run_until_ended(LONG)
        world.send("t", partition=1)  # on its way
        world.connect_error = error
        world.cut(1)
        world.run(SHORT)
        assert world.sent[-1].outcome is Outcome.UNKNOWN
        assert type(world.sent[-1].error) is DeliveryFailed
    world.connect_error = error
    world.send("t", partition=1)
    see_refused(world)


@pytest.mark.parametrize("error", PASSING, ids=name)
def test_what_may_pass_is_waited_for(error: ClientError) -> None:
    world = ProducerWorld()
    world.control_fails, world.control_error, world.connect_error = 5, error, error
    world.send("t", partition=0)
    world.run(SHORT)
    assert world.sent[0].outcome is None
    world.connect_error = None
    world.run_until_ended(LONG)
    assert world.sent[0].outcome is Outcome.DELIVERED


REFUSALS: dict[str, tuple[dict[int, dict[str, Any]], dict[str, Any], str]] = {
    "no Produce": ({API_VERSIONS: {"api_keys": SPOKEN[1:]}}, {}, "speaks none of Produce"),
    "no Metadata": ({API_VERSIONS: {"api_keys": SPOKEN[:1]}}, {}, "speaks none of Metadata"),
    "no producer ids": ({API_VERSIONS: {"api_keys": SPOKEN[:2]}}, {}, "speaks none of InitProducerId"),
    "no producer id": ({INIT_PRODUCER_ID: {"error_code": 31}}, {}, "a broker refused a producer id: .*CLUSTER_AUTHORI"),
    "no logins": (
        {},
        {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": "a", "sasl_password": "b"},
        "speaks none of SaslHandshake",
    ),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refusal_ends_a_message_and_a_column_and_says_why(run: Run, refusal: str) -> None:
    broker = LyingBroker()
    broker.answers, settings, sentence = REFUSALS[refusal]

    async def work() -> None:
        async with broker.run() as address, AsyncProducer(address, **FAST | WAITS | settings) as p:
            for _ in range(2):
                with pytest.raises(DeliveryFailed, match=sentence) as caught:
                    await p.send("t", b"x")
                assert not isinstance(caught.value, Expired)
            with pytest.raises(DeliveryFailed, match=sentence) as caught:
                await p.send_many("t", None, [b"x"])
            assert not isinstance(caught.value, Expired)

    run(work)
