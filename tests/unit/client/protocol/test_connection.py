"""A client's connection without its socket: bytes out, bytes in, and every way in which a broker misbehaves."""

import subprocess
import sys
from typing import Any

import pytest

from korvet_fast.client.protocol.connection import LARGEST_ANSWER, ConnectionState
from korvet_fast.client.protocol.errors import AuthenticationFailed, ClientError, ConnectionLost
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS, METADATA
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.security import SASL_HANDSHAKE
from scripted_broker import NODES, SPOKEN, frame

BROKER = Address("broker", 9092)


def sent(parts: Any) -> tuple[int, int, int]:
    """API key, version and correlation id of a request."""
    data = b"".join(bytes(part) for part in parts)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    return tuple(int.from_bytes(data[at : at + size], "big") for at, size in ((4, 2), (6, 2), (8, 4)))  # type: ignore[return-value]


def receive(state: ConnectionState, data: bytes, most: int = 1 << 20) -> list[dict[str, Any]]:
    """The answers in bytes that come, at most so many at a time."""
    answers: list[dict[str, Any]] = []
    while True:
        while (answer := state.next_answer()) is not None:
            answers.append(answer)
        if not data:
            return answers
        buffer = state.get_buffer()
        count = min(most, len(buffer), len(data))
        buffer[:count] = data[:count]
        state.buffer_updated(count)
        data = data[count:]


def connected(spoken: list[dict[str, int]] = SPOKEN, *, tls: bool = False) -> ConnectionState:
    state = ConnectionState(BROKER, tls=tls)
    (answer,) = receive(state, frame(*sent(state.negotiate()), {"error_code": 0, "api_keys": spoken}))
    assert state.negotiate(answer) is None
    return state


def test_the_core_imports_nothing_that_does_io() -> None:
    program = (
        "import sys, korvet_fast.client.protocol.connection, korvet_fast.client.protocol.requests\n"
        "print({'asyncio', 'selectors', 'socket', 'ssl', 'threading'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_versions_are_negotiated_first() -> None:
    state = ConnectionState(BROKER)
    assert sent(state.negotiate()) == (API_VERSIONS.key, API_VERSIONS.highest, 0)
    values = {"error_code": 0, "api_keys": SPOKEN}
    (answer,) = receive(state, frame(API_VERSIONS.key, API_VERSIONS.highest, 0, values))
    assert state.negotiate(answer) is None
    assert state.version(METADATA) == 12
    assert state.speaks(METADATA)
    assert not state.speaks(FETCH)
    assert sent(state.request(METADATA, {})) == (METADATA.key, 12, 1)


def test_an_older_broker_is_asked_in_version_0_once() -> None:
    state = ConnectionState(BROKER)
    unknown = {"error_code": 35, "api_keys": []}
    (answer,) = receive(state, frame(*sent(state.negotiate())[:1], 0, 0, unknown))
    assert sent(state.negotiate(answer)) == (API_VERSIONS.key, 0, 1)
    (answer,) = receive(state, frame(API_VERSIONS.key, 0, 1, unknown))
    with pytest.raises(ClientError, match=r"broker:9092 refused to tell its API versions \(error 35\)"):
        state.negotiate(answer)


def test_the_newest_common_version_is_chosen() -> None:
    state = connected([{"api_key": METADATA.key, "min_version": 2, "max_version": 7}])
    assert sent(state.request(METADATA, {})) == (METADATA.key, 7, 1)
    too_new = connected([{"api_key": METADATA.key, "min_version": 90, "max_version": 91}])
    with pytest.raises(ClientError, match="only versions 90 to 91 of Metadata; this client needs one of 0 to 12"):
        too_new.request(METADATA, {})
    assert too_new.failure is None  # other requests may follow


@pytest.mark.parametrize("most", [1, 7, 1 << 20])
def test_answers_come_in_order_however_their_bytes_come(most: int) -> None:
    state = connected()
    asked = [sent(state.request(METADATA, {})) for _ in range(5)]
    assert [each[2] for each in asked] == [1, 2, 3, 4, 5]
    data = b"".join(frame(*each, NODES | {"controller_id": each[2]}) for each in asked)
    assert [answer["controller_id"] for answer in receive(state, data, most)] == [1, 2, 3, 4, 5]
    assert state.unanswered == 0


def test_the_room_for_an_answer_is_what_its_request_asked_for() -> None:
    state = connected([{"api_key": FETCH.key, "min_version": 12, "max_version": 12}])
    state.request(FETCH, {"max_bytes": 8 << 20, "topics": []})
    assert receive(state, LARGEST_ANSWER.to_bytes(4, "big")) == []
    assert len(state.get_buffer()) == 9 << 20


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"HTTP/1.1 400 Bad", "BAD_LENGTH"),
        (b"\xff\xff\xff\xff", "an answer of -1 bytes"),
        (b"\x00\x00\x00\x05wrong", "does not answer as a Kafka broker does"),
        (frame(METADATA.key, 12, 8, NODES), "answer 8 instead of 1"),
    ],
    ids=["no Kafka", "negative length", "nonsense", "another's answer"],
)
def test_what_is_no_answer_ends_the_connection_and_the_failure_stays(data: bytes, words: str) -> None:
    state = connected()
    state.request(METADATA, {})
    with pytest.raises(ClientError, match=words) as first:
        receive(state, data)
    assert not isinstance(first.value, ConnectionLost)  # on a new connection the broker would answer the same
    for use in (state.next_answer, lambda: state.request(METADATA, {})):
        with pytest.raises(ClientError) as again:
            use()
        assert again.value is first.value


@pytest.mark.parametrize("most", [1, 1 << 20])
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", ": it speaks HTTP; the broker's log names its Kafka port"),
        (b"V1|0|ERR|BAD_REQUEST|", ": it speaks the text protocol; the broker's log names its Kafka port"),
        (b"220 mail.example.org\r\n", ": BAD_LENGTH: an answer of 842149920 bytes; the broker's log names its Kafka"),
        (b"\x00\x00\x00\x05wrong", "; the broker's log names its Kafka port when it starts: ready kafka://HOST:PORT"),
    ],
    ids=["HTTP", "text", "letters", "nonsense"],
)
def test_a_port_that_does_not_speak_kafka_is_told_apart(data: bytes, words: str, most: int) -> None:
    state = ConnectionState(BROKER)
    state.negotiate()
    with pytest.raises(ClientError) as failure:
        receive(state, data, most)
    assert str(failure.value).startswith("broker:9092 does not answer as a Kafka broker does: ")
    assert words in str(failure.value)


def test_a_port_that_hangs_up_at_once_is_perhaps_not_for_kafka() -> None:
    state = ConnectionState(BROKER)
    state.negotiate()
    said = "broker:9092 closed the connection without an answer; perhaps its listener has TLS, or is for something else"
    assert str(state.lose(None)).startswith(f"{said}: the broker's log")
    late = connected()
    assert str(late.lose(None)) == "broker:9092 closed the connection"


@pytest.mark.parametrize(("tls", "protocol"), [(False, "SASL_PLAINTEXT"), (True, "SASL_SSL")])
def test_a_broker_that_hangs_up_at_the_first_request_perhaps_wants_a_login(tls: bool, protocol: str) -> None:
    hint = f"; it stops, or it wants a login: then set security.protocol={protocol}"
    login = {"mechanism": "PLAIN"}
    for first, values, served, said in (
        (METADATA, {}, False, hint),
        (METADATA, {}, True, ""),
        (SASL_HANDSHAKE, login, False, ""),
    ):
        state = connected([*SPOKEN, {"api_key": SASL_HANDSHAKE.key, "min_version": 1, "max_version": 1}], tls=tls)
        asked = sent(state.request(first, values))
        state.request(METADATA, {})
        if served:
            receive(state, frame(*asked, NODES))
        assert str(state.lose(None)) == f"broker:9092 closed the connection{said}"


def test_only_the_answer_with_the_versions_has_to_be_small() -> None:
    state = connected([{"api_key": FETCH.key, "min_version": 12, "max_version": 12}])
    state.request(FETCH, {"max_bytes": 8 << 20, "topics": []})
    assert receive(state, b"220 ") == [], "an answer of 842 MB begins so"


def test_a_broker_that_answers_before_it_has_read_a_request_and_then_reads_no_more() -> None:
    state = connected()
    (_,) = receive(state, frame(*sent(state.request(METADATA, {})), NODES))
    assert str(state.time_out(0.5)) == "broker:9092 did not take all of a request within 0.5 s"


def test_an_answer_that_nobody_asked_for_comes_behind_good_ones() -> None:
    state = connected()
    asked = sent(state.request(METADATA, {}))
    both = frame(*asked, NODES) * 2
    state.get_buffer()[: len(both)] = both
    state.buffer_updated(len(both))
    assert state.next_answer() is not None
    with pytest.raises(ClientError, match="an answer that nobody asked for"):
        state.next_answer()


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda state: state.lose(None), "broker:9092 closed the connection"),
        (lambda state: state.lose(ConnectionResetError(104, "x")), "lost the connection to broker:9092: Connection re"),
        (lambda state: state.lose(RuntimeError("tlsv1 alert unknown ca")), "refuses the certificate of this side"),
        (lambda state: state.lose(RuntimeError("odd")), "lost the connection to broker:9092: odd"),
        (lambda state: state.time_out(0.5), r"broker:9092 did not answer Metadata within 0\.5 s"),
        (lambda state: state.close(), "the connection to broker:9092 was closed"),
    ],
    ids=["end of stream", "system error", "certificate", "other error", "time", "closed"],
)
def test_a_lost_connection_fails_with_the_first_reason(end: Any, words: str) -> None:
    state = connected()
    state.request(METADATA, {})
    failure = end(state)
    assert state.unanswered == 0
    for later in (state.lose(None), state.time_out(1.0), state.close()):
        assert later is failure
    kind = AuthenticationFailed if "certificate" in words else ConnectionLost
    with pytest.raises(kind, match=words):
        state.next_answer()
