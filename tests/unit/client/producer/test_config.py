"""The producer's settings: both names of each, what contradicts itself, what would never send."""

from datetime import timedelta
from typing import Any

import pytest

from korvet_fast.client.producer.config import ProducerConfig, read_config
from korvet_fast.client.producer.settings import SETTINGS
from korvet_fast.errors import SettingError

SAMPLES: dict[str, Any] = {
    "acks": 1, "idempotent": False, "in_flight": 2, "compression": "lz4", "batch_bytes": 99, "batch_messages": 7,
    "flush_bytes": 50, "flush_messages": 3, "message_bytes": 2000, "memory": 1 << 24, "retries": 4,
    "partitioner": "crc32", "ignore_keys": True, "adaptive": False, "return_successes": True, "return_errors": False,
    "on_failure": "stop", "answer_bytes": 5000, "interceptors": [], "transactional_id": "billing",
}  # fmt: skip
NEEDED = {"flush_bytes": {"linger_ms": 5}, "flush_messages": {"linger_ms": 5}, "acks": {}}


@pytest.mark.parametrize("setting", SETTINGS, ids=[each.name for each in SETTINGS])
def test_kafkas_and_saramas_names_mean_the_same(setting: Any) -> None:
    sample = SAMPLES.get(setting.field, timedelta(seconds=0.05 if setting.field == "backoff" else 20))
    more = NEEDED.get(setting.field, {})
    underscored = setting.name.replace(".", "_")
    found = [
        read_config({name: sample, **more})
        for name in (setting.name, underscored, f"Producer.{setting.sarama}", setting.sarama)
    ]
    assert len({repr(each) for each in found}) == 1
    assert getattr(found[0], setting.field) != getattr(read_config(more), setting.field) or not sample


def test_the_defaults_are_safe() -> None:
    config = read_config({})
    assert (config.acks, config.idempotent, config.window, config.retries) == (-1, True, 5, None)
    assert read_config({"acks": 1}).window == 1


def test_kafkas_times_are_milliseconds_and_saramas_seconds() -> None:
    assert read_config({"linger.ms": 20}).linger == 0.02
    assert read_config({"Producer.Flush.Frequency": 0.02}).linger == 0.02


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lingerms": 5}, r"no setting 'lingerms'; did you mean 'linger\.ms'"),
        ({"Producer.Flush.Frequenzy": 5}, r"did you mean 'linger\.ms'"),
        ({"linger_ms": 1, "Flush.Frequency": 1}, "are the same setting"),
        ({"flush_messages": 10}, r"flush_messages without linger\.ms may never send"),
        ({"Producer.Flush.Bytes": 10}, "may never send"),
        ({"linger_ms": 5, "flush_bytes": 1 << 25}, "never reached"),
        ({"linger_ms": 120_000}, "messages expire unsent"),
        ({"acks": 1, "enable_idempotence": True}, "needs acks=all"),
        ({"retries": 0}, r"enable\.idempotence needs retries of 1 or more"),
        ({"acks": 2}, "acks=2 cannot be used; it must be all, 1 or 0"),
        ({"acks": "some"}, "acks='some' cannot be used; it must be all, 1 or 0, or left out"),
        ({"acks": True}, "acks=True cannot be used; it must be all, 1 or 0"),
        ({"acks": 1.9}, "acks=1.9 cannot be used; it must be all, 1 or 0"),
        ({"linger_ms": True}, "linger_ms=True cannot be used; it must be milliseconds"),
        ({"linger_ms": None}, "linger_ms=None cannot be used; it must be milliseconds"),
        ({"Producer.Timeout": float("nan")}, "Producer.Timeout=nan cannot be used; it must be seconds"),
        ({"batch_size": float("nan")}, "batch_size=nan cannot be used; it must be a whole number from 1 to 2,147,"),
        ({"buffer_memory": float("inf")}, "buffer_memory=inf cannot be used; it must be a whole number from 1 to"),
        ({"timeout_ms": 1 << 31, "request_timeout_ms": 1 << 31}, "timeout_ms=2147483648 .* at most 2,147,483,647"),
        ({"Transaction.Timeout": 2147483.648}, "Transaction.Timeout=2147483.648 .* at most 2,147,483.647, or a timed"),
        ({"transactional_id": "\ud800"}, "a text of 1 to 32,767 bytes that can be printed"),
        ({"transactional_id": "x" * 32_768}, "a text of 1 to 32,767 bytes that can be printed"),
        ({"retries": -1}, "retries=-1 cannot be used; it must be a whole number from 0 to 2,147,483,647, or left out"),
        ({"compression_type": "rar"}, "one of none, gzip, snappy, lz4, zstd"),
        ({"partitioner": "magic"}, "one of murmur2"),
        ({"on_failure": "panic"}, "one of fail, stop, continue"),
        ({"return_errors": "maybe"}, "true or false"),
        ({"batch_size": 0}, "a whole number from 1"),
        ({"batch_size": 1.5}, "a whole number"),
        ({"max_in_flight_requests_per_connection": 6}, "from 1 to 5"),
        ({"linger_ms": -1}, "not negative"),
        ({"buffer_memory": 1000}, "four times"),
        ({"retry_backoff_ms": 5000}, "is above"),
        ({"request_timeout_ms": 0}, "leaves no time"),
        ({"timeout_ms": 40_000}, "answers would come too late"),
        ({"interceptor_classes": [object()]}, "on_send, on_acknowledgement"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(given: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        read_config(given)


NUMBERS = [float("nan"), float("inf"), float("-inf"), -1, -0.5, 10**400, -(10**400)]
WORDS = ["nan", "inf", " 5", "5 ", "1_0", "5 ms", "0x10", "9" * 5000, "five", ""]
OTHERS = [b"5", 5j, [5], {5: 5}, object(), ProducerConfig]
# The fields that mean something by one of these.
USED: dict[str, tuple[Any, ...]] = {
    "transactional_id": (None, *[word for word in WORDS if word]),
    "idempotent": (None, True),
    "retries": (None,),
    "interceptors": ("",),  # none: Kafka's default
    "acks": (-1,),
    **dict.fromkeys(("ignore_keys", "adaptive", "return_successes", "return_errors"), (True,)),
}


@pytest.mark.parametrize("setting", SETTINGS, ids=[each.name for each in SETTINGS])
@pytest.mark.parametrize("sarama", [False, True])
def test_whatever_is_no_value_is_refused_in_a_sentence(setting: Any, sarama: bool) -> None:
    name = setting.sarama if sarama else setting.name
    for value in [None, True, *NUMBERS, *WORDS, *OTHERS]:
        if any(value is each for each in USED.get(setting.field, ())):
            continue
        with pytest.raises(SettingError) as caught:
            read_config({name: value})
        assert str(caught.value).startswith(f"{name}=")
        assert " cannot be used; it must be " in str(caught.value)
        assert len(str(caught.value)) < 300
