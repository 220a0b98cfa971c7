"""Every golden frame is understood by both implementations and written back to the same bytes."""

from types import ModuleType
from typing import Any

import pytest

from kafka_messages import CATALOG
from korvet_fast.errors import CodecError
from korvet_fast.wire.kafka.shapes.message import Shape
from twin.implementations import IMPLEMENTATIONS, agree
from vectors.vector import Vector, load

ELEMENTS = 10_000
RECORDS = 1 << 20
PRODUCE, FETCH = 0, 1

VECTORS = load()
# Requests of APIs, and of versions, that this broker does not serve: their clients use them with Apache Kafka only.
KNOWN = [v for v in VECTORS if v.api_key in CATALOG and v.api_version <= CATALOG[v.api_key].highest]

every_implementation = pytest.mark.parametrize("impl", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS)
every_vector = pytest.mark.parametrize("vector", KNOWN, ids=str)


def shapes(vector: Vector) -> list[tuple[Shape, bytes]]:
    """The frames of an exchange, with what each is an example of."""
    message = CATALOG[vector.api_key]
    found = [(message.request_shape, vector.request)]
    if vector.response is not None:
        found.append((message.response_shape, vector.response))
    return found


def record_sets(vector: Vector, impl: ModuleType) -> list[memoryview]:
    """The records a client sends, or is sent."""
    message = CATALOG[vector.api_key]
    if vector.api_key == PRODUCE:
        topics = impl.Schema(*message.request_shape).decode(vector.request, vector.api_version, ELEMENTS)["topic_data"]
        return [partition["records"] for topic in topics for partition in topic["partition_data"]]
    assert vector.response is not None
    topics = impl.Schema(*message.response_shape).decode(vector.response, vector.api_version, ELEMENTS)["responses"]
    return [partition["records"] for topic in topics for partition in topic["partitions"] if partition["records"]]


def test_every_client_was_recorded_in_every_compression() -> None:
    names = {vector.client.split()[0] for vector in VECTORS}
    assert names == {"kafka-python", "confluent-kafka", "aiokafka", "kcat"}
    for name in names:
        sent = [v for v in KNOWN if v.client.startswith(name) and v.api_key == PRODUCE]
        found = {
            batch.compression
            for v in sent
            for records in record_sets(v, IMPLEMENTATIONS["native"])
            for batch in IMPLEMENTATIONS["native"].batch_headers(records, True)
        }
        assert found == {0, 1, 2, 3, 4}, name


@every_implementation
@every_vector
def test_decoded_and_encoded_again(impl: ModuleType, vector: Vector) -> None:
    for shape, frame in shapes(vector):
        schema = impl.Schema(*shape)
        values = schema.decode(frame, vector.api_version, ELEMENTS)
        assert schema.encode(values, vector.api_version) == frame


@every_vector
def test_the_implementations_agree(vector: Vector) -> None:
    for shape, frame in shapes(vector):
        agree(lambda impl, shape=shape, frame=frame: impl.Schema(*shape).decode(frame, vector.api_version, ELEMENTS))


@every_vector
def test_no_prefix_is_a_message(vector: Vector) -> None:
    for shape, frame in shapes(vector):
        schemas = {impl: impl.Schema(*shape) for impl in IMPLEMENTATIONS.values()}
        for end in range(0, len(frame), 1 + len(frame) // 50):
            codes = set()
            for schema in schemas.values():
                with pytest.raises(CodecError) as caught:
                    schema.decode(frame[:end], vector.api_version, ELEMENTS)
                codes.add(caught.value.code)
            assert len(codes) == 1


@every_implementation
@pytest.mark.parametrize("vector", [v for v in KNOWN if v.api_key in (PRODUCE, FETCH)], ids=str)
def test_the_records_pass_the_check(impl: ModuleType, vector: Vector) -> None:
    for records in record_sets(vector, impl):
        headers = impl.batch_headers(records, True)
        assert sum(batch.size for batch in headers) == len(records)
        for batch in headers:
            assert impl.validate_batch(records[batch.start : batch.start + batch.size], RECORDS)[1] == batch.count >= 1
        columns: dict[str, Any] = impl.to_columns(records, RECORDS)
        assert len(columns["offset"]) == sum(batch.count for batch in impl.batch_headers(records, True))
