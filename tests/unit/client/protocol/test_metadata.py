"""A client's metadata, from Metadata answers: leaders with their epochs, the controller, and errors of topics."""

from typing import Any

import pytest

from korvet_fast.client.protocol.errors import BrokerError, ClientError, ConnectionLost, Unreachable, is_retriable
from korvet_fast.client.protocol.metadata import ClusterMetadata, LeaderAndEpoch, count_partitions, metadata_request
from korvet_fast.endpoint import Address

ONE, TWO = Address("one", 1), Address("two", 2)
UNKNOWN_TOPIC = 3
NO_ID, FIRST, SECOND = (bytes([number] * 16) for number in range(3))  # topic ids


def answer(*topics: dict[str, Any], controller: int = 2) -> dict[str, Any]:
    brokers = [{"node_id": 1, "host": "one", "port": 1}, {"node_id": 2, "host": "two", "port": 2}]
    return {"brokers": brokers, "controller_id": controller, "topics": list(topics)}


def topic(
    name: str, *leaders: int, error: int = 0, epoch: int = 5, internal: bool = False, topic_id: bytes = FIRST
) -> dict[str, Any]:
    rows = [{"partition_index": at, "leader_id": leader, "leader_epoch": epoch} for at, leader in enumerate(leaders)]
    return {"name": name, "topic_id": topic_id, "error_code": error, "is_internal": internal, "partitions": rows}


def known(*topics: dict[str, Any]) -> ClusterMetadata:
    metadata = ClusterMetadata()
    metadata.update(answer(*topics))
    return metadata


def test_leaders_have_addresses_and_epochs() -> None:
    metadata = known(topic("t", 1, 2))
    assert metadata.leader("t", 0) == LeaderAndEpoch(ONE, 5)
    assert metadata.leader("t", 1) == LeaderAndEpoch(TWO, 5)
    assert metadata.controller() == TWO
    assert metadata.has_leader("t", 1)


def test_a_later_answer_replaces_an_earlier_one() -> None:
    metadata = known(topic("t", 1), topic("u", 1))
    metadata.update(answer(topic("t", 2, epoch=6), controller=-1))
    assert metadata.leader("t", 0) == LeaderAndEpoch(TWO, 6)
    assert metadata.leader("u", 0) == LeaderAndEpoch(ONE, 5)  # that answer was about another topic
    assert metadata.controller() is None


def test_a_partition_that_is_not_named_any_more_has_no_leader() -> None:
    metadata = known(topic("t", 1, 2), topic("u", 1, 2))
    metadata.update(answer(topic("t", 1)))
    assert metadata.has_leader("t", 0)
    assert not metadata.has_leader("t", 1)
    assert metadata.has_leader("u", 1)
    with pytest.raises(ClientError, match="topic 't' has no partition 1"):
        metadata.leader("t", 1)


def test_a_broker_that_lags_behind_replaces_no_leader() -> None:
    """KIP-320; a leader of the same epoch is not older."""
    metadata = known(topic("t", 1, epoch=6))
    metadata.update(answer(topic("t", 2, epoch=5)))
    assert metadata.leader("t", 0) == LeaderAndEpoch(ONE, 6)
    metadata.update(answer(topic("t", error=UNKNOWN_TOPIC, topic_id=NO_ID)))
    metadata.update(answer(topic("t", -1, epoch=5)))
    assert metadata.leader("t", 0) == LeaderAndEpoch(ONE, 6)
    metadata.update(answer(topic("t", -1, epoch=6)))
    assert not metadata.has_leader("t", 0)
    metadata.update(answer(topic("t", 2, epoch=7)))
    assert metadata.leader("t", 0) == LeaderAndEpoch(TWO, 7)


def test_a_topic_that_was_made_anew_begins_with_a_low_epoch() -> None:
    metadata = known(topic("t", 1, epoch=6))
    metadata.update(answer(topic("t", 2, epoch=0, topic_id=SECOND)))
    assert metadata.leader("t", 0) == LeaderAndEpoch(TWO, 0)


def test_without_topic_ids_or_epochs_the_last_answer_is_believed() -> None:
    """A broker that tells none cannot say whether the topic was made anew."""
    metadata = known(topic("t", 1, epoch=6, topic_id=NO_ID), topic("u", 1, epoch=6))
    metadata.update(answer(topic("t", 2, epoch=0, topic_id=NO_ID), topic("u", 2, epoch=-1)))
    assert metadata.leader("t", 0) == LeaderAndEpoch(TWO, 0)
    assert metadata.leader("u", 0) == LeaderAndEpoch(TWO, -1)


def test_a_topic_with_an_error_keeps_its_leaders() -> None:
    """A broker that has just started may not know it yet."""
    metadata = known(topic("t", 1))
    metadata.update(answer(topic("t", error=UNKNOWN_TOPIC)))
    assert metadata.leader("t", 0) == LeaderAndEpoch(ONE, 5)


def test_topics_that_are_forgotten_have_to_be_asked_for() -> None:
    metadata = known(topic("t", 1), topic("u", 1))
    metadata.forget_topics(["t"])
    assert not metadata.has_leader("t", 0)
    assert metadata.has_leader("u", 0)


def test_leaders_that_are_forgotten_have_to_be_asked_for() -> None:
    metadata = known(topic("t", 1))
    metadata.forget_leaders()
    assert not metadata.has_leader("t", 0)
    assert metadata.brokers == {1: ONE, 2: TWO}


@pytest.mark.parametrize("leader", [-1, 7], ids=["no leader", "a broker that is gone"])
def test_a_partition_without_a_leader_may_have_one_later(leader: int) -> None:
    metadata = known(topic("t", leader))
    assert not metadata.has_leader("t", 0)
    with pytest.raises(BrokerError, match=r"partition 0 of topic 't': it has no leader now.*LEADER_NOT_AVAIL") as error:
        metadata.leader("t", 0)
    assert is_retriable(error.value)


def test_a_topic_or_partition_that_does_not_exist() -> None:
    metadata = known(topic("gone", error=UNKNOWN_TOPIC), topic("t", 1))
    with pytest.raises(BrokerError, match="topic 'gone': There is no such topic"):
        metadata.leader("gone", 0)
    with pytest.raises(ClientError, match="topic 't' has no partition 1") as error:
        metadata.leader("t", 1)
    assert not is_retriable(error.value)


def test_partitions_are_counted() -> None:
    full = answer(topic("t", 1, 2), topic("__inner", 1, internal=True), topic("broken", error=5))
    assert count_partitions(full, None) == {"t": 2}
    assert count_partitions(answer(topic("__inner", 1, internal=True)), ["__inner"]) == {"__inner": 1}
    with pytest.raises(BrokerError, match="topic 'broken'"):
        count_partitions(full, ["t", "__inner", "broken"])


def test_all_topics_or_some() -> None:
    assert metadata_request(None) == {"topics": None, "allow_auto_topic_creation": False}
    assert metadata_request(["t"], create=True) == {"topics": [{"name": "t"}], "allow_auto_topic_creation": True}


@pytest.mark.parametrize(
    ("error", "once", "while_created"),
    [
        (ConnectionLost("x"), True, True),
        (Unreachable("x"), True, True),
        (ClientError("no Kafka broker"), False, False),
        (BrokerError("x", 6), True, True),  # NOT_LEADER_OR_FOLLOWER
        (BrokerError("x", UNKNOWN_TOPIC), False, True),
        (BrokerError("x", 1), False, False),  # OFFSET_OUT_OF_RANGE
        (BrokerError("x", 29), False, False),  # a code that has no name here
    ],
)
def test_which_errors_may_pass(error: ClientError, once: bool, while_created: bool) -> None:
    assert is_retriable(error) is once
    assert is_retriable(error, unknown_topics=True) is while_created
