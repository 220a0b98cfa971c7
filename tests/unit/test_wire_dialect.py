"""What the first bytes of a connection are taken for, and what weighs how much."""

from pathlib import Path

import pytest

from kafka_requests import EVERY, request_of
from kafka_server import API_VERSIONS, PRODUCE, kafka_server, run
from korvet_fast.wire.kafka.dialect import KafkaDialect


def test_other_protocols_are_known_by_their_first_bytes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            dialect = KafkaDialect(server.broker)
            for first, expected in (
                (b"GET / HTTP/1.1\r\n", "an HTTP request"),
                (b"POST /topics HTTP", "an HTTP request"),
                (b"HEAD / HTTP/1.0\r\n", "an HTTP request"),
                (b"\x16\x03\x01\x02\x00\x01", "a TLS handshake"),
                (b"*1\r\n$4\r\nPING\r\n", "a Redis client"),
                (b"V1|7|PRODUCE|orde", "the text protocol"),
            ):
                said = dialect.mistaken(first)
                assert said is not None
                assert expected in said
            for key, version in EVERY:
                request = request_of(key, version)
                assert dialect.mistaken(len(request).to_bytes(4, "big") + request[:12]) is None
            dialect.close()

    run(scenario)


@pytest.mark.parametrize(("key", "factor"), [(PRODUCE, 1), (API_VERSIONS, 32)])
def test_records_weigh_what_they_are_and_structure_more(tmp_path: Path, key: int, factor: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            dialect = KafkaDialect(server.broker)
            frame = bytearray(request_of(key, 3))
            assert dialect.session("test").weigh(frame) == factor * len(frame)
            dialect.close()

    run(scenario)
