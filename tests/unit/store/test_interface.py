"""The store's interface: its docstring counts truly, no engine lacks what it claims, and Kafka's consumers stay out."""

import inspect
import re

import pytest

from korvet_fast.store import interface
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import GroupOffsetMirror, KeyStore, LogStore, PlainFiles, ProducerHeaders, SharedStore
from korvet_fast.store.redis.log.producer_headers import RedisProducerHeaders
from korvet_fast.store.redis.store import RedisStore

NUMBERS = {"one": 1, "two": 2, "three": 3, "six": 6, "nine": 9}


def find_verbs(protocol: type) -> set[str]:
    """The methods that a protocol asks for."""
    return {name for name, one in vars(protocol).items() if inspect.isfunction(one) and not name.startswith("_")}


def test_the_docstring_counts_truly() -> None:
    said = re.findall(r"`(\w+)`(?: \(|, )(\w+)", interface.__doc__ or "")
    counted = {name: NUMBERS[word] for name, word in said if word in NUMBERS}
    protocols = (LogStore, KeyStore, SharedStore, ProducerHeaders, GroupOffsetMirror, PlainFiles)
    assert counted == {protocol.__name__: len(find_verbs(protocol)) for protocol in protocols}


@pytest.mark.parametrize(
    ("engine", "protocols"),
    [
        (EmbeddedStore, (LogStore, KeyStore)),
        (RedisStore, (LogStore, KeyStore, SharedStore, GroupOffsetMirror)),
        (RedisProducerHeaders, (ProducerHeaders,)),
    ],
)
def test_an_engine_has_all_verbs(engine: type, protocols: tuple[type, ...]) -> None:
    for protocol in protocols:
        for name in find_verbs(protocol):
            asked = inspect.signature(getattr(protocol, name))
            assert inspect.signature(getattr(engine, name)) == asked, name


def test_logs_and_keys_know_nothing_of_producers_and_groups() -> None:
    words = re.compile(r"group|producer|consumer|kafka", re.IGNORECASE)
    for protocol in (LogStore, KeyStore, SharedStore):
        assert words.findall(inspect.getsource(protocol).replace("KorvetError", "")) == []
