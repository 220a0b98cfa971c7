"""The protocol that the first bytes of a connection are taken for, by another dialect."""

import pytest

from kafka_requests import EVERY, request_of
from kafka_server import API_VERSIONS
from korvet_fast.wire.kafka.dialect import KafkaDialect
from korvet_fast.wire.protocols import FOREIGN, find_protocol
from korvet_fast.wire.text.dialect import TextDialect

FIRST = {
    "http": b"PUT /topics HTTP/1.1\r\n",
    "http2": b"PRI * HTTP/2.0\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01",
    "ssh": b"SSH-2.0-OpenSSH_9",
    "redis": b"*1\r\n$4\r\nPING\r\n",
    "text": b"V1|7|PRODUCE|orde",
    "kafka": b"\0\0\0\x18\0\x12\0\4abcd",
}
KNOWN = {**FOREIGN, "text": TextDialect.first_bytes, "kafka": KafkaDialect.first_bytes}


def detect_protocol(first: bytes, own: str, listener: str) -> str | None:
    """As `wire.dialects.detect_protocol`, of a dialect whose own clients send these first bytes of the table."""
    return find_protocol(first, [known for protocol, known in KNOWN.items() if protocol != own], listener)


@pytest.mark.parametrize("protocol", FIRST)
def test_each_is_foreign_to_all_but_its_own(protocol: str) -> None:
    said = detect_protocol(FIRST[protocol], "another", "a toy listener")
    assert said is not None
    assert said.startswith("this is a toy listener, and the first bytes look like ")
    assert detect_protocol(FIRST[protocol], protocol, "a toy listener") is None


@pytest.mark.parametrize("verb", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"])
def test_every_verb_of_http_is_known(verb: str) -> None:
    said = detect_protocol(f"{verb} /topics HTTP/1.1"[:16].encode(), "text", "a text listener")
    assert said == "this is a text listener, and the first bytes look like an HTTP request"


def test_a_client_of_kafka_is_known_by_its_api_versions() -> None:
    for key, version in EVERY:
        request = request_of(key, version)
        said = detect_protocol(len(request).to_bytes(4, "big") + request[:12], "text", "a text listener")
        assert (said is not None) == (key == API_VERSIONS)


def test_a_produce_of_kafka_0_7_is_not_taken_for_modern_kafka() -> None:
    produce = bytes([0, 0, 0, 40, 0, 0, 0, 5]) + b"topic" + bytes(4)  # of Kafka 0.7: no version, no correlation id
    assert detect_protocol(produce, "legacy", "a listener for Kafka 0.7") is None
