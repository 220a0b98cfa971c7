"""An error in a message comes to whoever made the message, at `send`; other messages are sent."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from broker_process import BrokerProcess
from korvet_fast.client import AsyncProducer, Producer
from korvet_fast.client.producer import Message
from korvet_fast.client.producer.message_check import check_message

Run = Callable[[Callable[[], Awaitable[Any]]], Any]

WRONG: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("topic", {"topic": b"t"}, TypeError, "topic is bytes, not str"),
    ("value", {"value": "x"}, TypeError, r"value is str, not bytes; encode it first"),
    ("key", {"key": 7}, TypeError, "key is int, not bytes"),
    ("partition", {"partition": "0"}, TypeError, "partition is str, not int"),
    ("partition of a flag", {"partition": True}, TypeError, "partition is bool, not int"),
    ("negative partition", {"partition": -1}, ValueError, "partition -1 is not from 0"),
    ("large partition", {"partition": 1 << 31}, ValueError, "partition 2147483648 is not from 0"),
    ("timestamp", {"timestamp": 1.5}, TypeError, "timestamp is float, not int"),
    ("negative timestamp", {"timestamp": -1}, ValueError, "timestamp -1 is not from 0"),
    ("large timestamp", {"timestamp": 1 << 63}, ValueError, "ms since 1970"),
    ("headers of a text", {"headers": "ab"}, TypeError, "headers is str, not a list of pairs"),
    ("headers of a dict", {"headers": {"a": b""}}, TypeError, "headers is dict, not a list of pairs"),
    ("header", {"headers": [b"ab"]}, TypeError, "a header is bytes, not a pair"),
    ("header of three", {"headers": [("a", b"", 1)]}, TypeError, "a header is tuple, not a pair"),
    ("header's name", {"headers": [(b"a", b"")]}, TypeError, "a header's name is bytes, not str"),
    ("header's value", {"headers": [("a", "b")]}, TypeError, "header 'a' is str, not bytes"),
    ("header's text", {"headers": [("\ud800", b"")]}, ValueError, "is no text that UTF-8 has"),
]
wrong = pytest.mark.parametrize(
    ("fields", "kind", "sentence"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG]
)


@wrong
def test_what_is_no_message_is_refused(fields: dict[str, Any], kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        check_message(Message(**{"topic": "t", "value": b"x", **fields}))


def test_headers_are_kept_as_they_were_sent() -> None:
    headers: list[Any] = [["a", b"1"], ("b", None)]
    checked = check_message(Message("t", b"x", b"k", headers, 2, 5))
    headers.clear()
    assert checked == Message("t", b"x", b"k", (("a", b"1"), ("b", None)), 2, 5)


@pytest.mark.parametrize("headers", [None, [], {}])
def test_no_headers_may_be_written_in_several_ways(headers: Any) -> None:
    assert check_message(Message("t", b"x", headers=headers)) == Message("t", b"x")


@pytest.mark.parametrize("message", [None, "x", ("t", b"x")])
def test_another_thing_is_no_message(message: Any) -> None:
    with pytest.raises(TypeError, match=f"a message is {type(message).__name__}, not Message"):
        check_message(message)


def test_none_for_headers_breaks_nothing(run: Run, broker: BrokerProcess) -> None:
    """The first message of a topic goes another way than those that join its run."""

    async def work() -> None:
        async with AsyncProducer(broker.bootstrap) as p:
            sent = [p.send("unheaded", b"x", headers=None) for _ in range(3)]  # type: ignore[arg-type]
            assert [(await each).offset for each in sent] == [0, 1, 2]
            await p.input.put(Message("unheaded", b"x", headers=None))  # type: ignore[arg-type]

    run(work)


def test_the_error_is_the_callers_and_what_is_sent_beside_it_arrives(run: Run, broker: BrokerProcess) -> None:
    """Also of messages that would join the run of others."""

    async def work() -> None:
        async with AsyncProducer(broker.bootstrap) as p:
            await p.send("checked", b"first")
            sent = []
            for _, fields, kind, sentence in WRONG:
                sent.append(p.send("checked", b"good"))
                with pytest.raises(kind, match=sentence):
                    p.send(**{"topic": "checked", "value": b"bad", **fields})
            with pytest.raises(ValueError, match="timestamp -1"):
                await p.send_many("checked", None, [b"bad"], timestamp=-1)
            await p.flush()
            assert sorted(each.result().offset for each in sent) == list(range(1, len(WRONG) + 1))
        assert p.metrics().accepted == len(WRONG) + 1

    run(work)


def test_the_producer_without_asyncio_says_it_at_once_too(broker: BrokerProcess) -> None:
    with Producer(broker.bootstrap) as p, pytest.raises(TypeError, match="a header is bytes"):
        p.send("checked", b"bad", headers=[b"ab"])  # type: ignore[list-item]
