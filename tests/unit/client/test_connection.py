"""The client against a broker that is scripted: every way in which a broker can disappoint it."""

import asyncio
import tracemalloc
from typing import Any

import pytest

from korvet_fast.client.cluster import Cluster
from korvet_fast.client.connection import Connection, connect
from korvet_fast.client.protocol.errors import ClientError, ConnectionLost, Unreachable
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS, METADATA
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from scripted_broker import NODES, SPOKEN, Script, ask, frame, introduce


def metadata_by(script: Script, patience: float = 10.0) -> Any:
    """The outcome of a Metadata request, after a proper introduction."""

    def scripted(key: int, version: int, correlation: int) -> bytes | None:
        return (introduce if key == API_VERSIONS.key else script)(key, version, correlation)

    async def work(endpoint: Address) -> Any:
        connection = await connect(endpoint, patience)
        try:
            return await connection.request(METADATA, {"topics": []})
        finally:
            await connection.close()

    return ask(scripted, work)


def test_an_answer_comes_back_as_values() -> None:
    assert metadata_by(lambda *asked: frame(*asked, NODES))["cluster_id"] == "c"


def test_requests_are_pipelined_and_answered_in_order() -> None:
    held: list[tuple[int, int, int]] = []

    def script(*asked: int) -> bytes:
        if asked[0] == API_VERSIONS.key:
            return introduce(*asked)
        held.append(asked)  # type: ignore[arg-type]
        if len(held) < 10:
            return b""
        return b"".join(frame(*each, NODES | {"cluster_id": str(each[2])}) for each in held)

    async def work(endpoint: Address) -> list[str]:
        connection = await connect(endpoint)
        answers = await asyncio.gather(*(connection.request(METADATA, {}) for _ in range(10)))
        await connection.close()
        return [answer["cluster_id"] for answer in answers]

    assert ask(script, work) == [str(number) for number in range(1, 11)]


def test_an_old_broker_that_knows_only_version_0_of_the_introduction() -> None:
    versions = []

    def script(key: int, version: int, correlation: int) -> bytes:
        versions.append(version)
        # An unknown version is answered in version 0 with error 35 (KIP-511).
        return frame(key, 0, correlation, {"error_code": 35 if version else 0, "api_keys": SPOKEN})

    async def work(endpoint: Address) -> int:
        connection = await connect(endpoint)
        await connection.close()
        return connection.version(METADATA)

    assert ask(script, work) == 12
    assert versions == [4, 0]


@pytest.mark.parametrize(
    ("lowest", "highest", "words"), [(13, 14, "only versions 13 to 14 of Metadata"), (None, None, "none of Metadata")]
)
def test_no_version_in_common(lowest: int | None, highest: int | None, words: str) -> None:
    spoken = [] if lowest is None else [{"api_key": 3, "min_version": lowest, "max_version": highest}]

    async def work(endpoint: Address) -> None:
        connection = await connect(endpoint)
        try:
            await connection.request(METADATA, {})
        finally:
            await connection.close()

    with pytest.raises(ClientError, match=words):
        ask(lambda *asked: frame(*asked, {"error_code": 0, "api_keys": spoken}), work)


def test_a_broker_that_will_not_introduce_itself() -> None:
    with pytest.raises(ClientError, match=r"refused to tell its API versions \(error 42\)"):
        ask(lambda *asked: frame(*asked, {"error_code": 42, "api_keys": []}), connect)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(lambda *asked: None, "closed the connection", id="hangs up"),
        pytest.param(lambda *asked: b"HTTP/1.1 400 Bad", "does not answer as a Kafka broker does", id="no Kafka"),
        pytest.param(lambda *asked: b"\x00\x00\x00\x05wrong", "does not answer as a Kafka broker", id="nonsense"),
        pytest.param(
            lambda key, version, correlation: frame(key, version, correlation + 1, NODES),
            "does not answer as a Kafka broker does",
            id="another request's answer",
        ),
    ],
)
def test_a_broken_answer_ends_the_connection(answer: Script, words: str) -> None:
    with pytest.raises(ClientError, match=words):
        metadata_by(answer)


def test_finding_4_7_an_answer_that_is_only_announced_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ClientError, match="did not answer Metadata"):
            metadata_by(lambda *asked: (1 << 30).to_bytes(4, "big"), patience=3.0)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_an_answer_that_nobody_asked_for() -> None:
    with pytest.raises(ClientError, match="nobody asked for"):
        # The second frame comes together with the first; the request after it meets a dead connection.
        def script(*asked: int) -> bytes:
            return introduce(*asked) + frame(3, 12, 7, NODES)

        async def work(endpoint: Address) -> None:
            connection = await connect(endpoint)
            await connection.request(METADATA, {})

        ask(script, work)


def test_no_answer_in_time_closes_the_connection() -> None:
    with pytest.raises(ClientError, match=r"did not answer Metadata within 3 s"):
        metadata_by(lambda *asked: b"", patience=3.0)


def test_after_a_failure_every_request_fails_alike() -> None:
    def script(*asked: int) -> bytes | None:
        return introduce(*asked) if asked[0] == API_VERSIONS.key else None

    async def work(endpoint: Address) -> list[BaseException | dict[str, Any]]:
        connection = await connect(endpoint)
        both = [connection.request(METADATA, {}), connection.request(METADATA, {})]
        first = await asyncio.gather(*both, return_exceptions=True)
        return [*first, *await asyncio.gather(connection.request(METADATA, {}), return_exceptions=True)]

    assert [type(error) for error in ask(script, work)] == [ConnectionLost] * 3


def test_closing_fails_what_is_unanswered() -> None:
    def script(*asked: int) -> bytes:
        return introduce(*asked) if asked[0] == API_VERSIONS.key else b""

    async def work(endpoint: Address) -> None:
        connection: Connection = await connect(endpoint)
        waiting = asyncio.ensure_future(connection.request(METADATA, {}))
        await asyncio.sleep(0)
        await connection.close()
        await waiting

    with pytest.raises(ClientError, match="was closed"):
        ask(script, work)


def test_nobody_listens() -> None:
    async def work() -> None:
        async with Cluster([Address("127.0.0.1", 1), Address("::1", 1)]):
            pass

    with pytest.raises(Unreachable, match=r"cannot connect to 127\.0\.0\.1:1: Connection refused; .*\[::1\]:1"):
        asyncio.run(work())


@pytest.mark.parametrize("host", ["127.0.0.1", "a\0b", "a" * 300, "é" * 80, ".."])
def test_an_address_that_cannot_be_is_unreachable(host: str) -> None:
    """A broker's Metadata answer may name any host and any port."""
    address = Address(host, 70_000 if host == "127.0.0.1" else 9092)
    with pytest.raises(Unreachable, match="cannot connect to "):
        asyncio.run(connect(address))


def test_the_second_bootstrap_address_is_tried_when_the_first_is_dead() -> None:
    async def work(endpoint: Address) -> str:
        async with Cluster([Address("127.0.0.1", 1), endpoint]) as cluster:
            return str((await cluster.metadata(None))["cluster_id"])

    def script(*asked: int) -> bytes:
        return introduce(*asked) if asked[0] == API_VERSIONS.key else frame(*asked, NODES)

    assert ask(script, work) == "c"


@pytest.mark.parametrize("method", ["leader", "controller"])
def test_a_cluster_without_a_leader_or_controller(method: str) -> None:
    async def work(endpoint: Address) -> None:
        async with Cluster([endpoint]) as cluster:
            if method == "leader":
                await cluster.leader("orders", 0)
            else:
                await cluster.ask_controller(METADATA, {})

    def script(*asked: int) -> bytes:
        return introduce(*asked) if asked[0] == API_VERSIONS.key else frame(*asked, NODES)

    with pytest.raises(ClientError, match=f"has no {method} now"):
        ask(script, work)


def test_two_callers_at_once_share_one_connection_to_a_broker() -> None:
    introductions = 0
    ports: list[int] = []

    def script(*asked: int) -> bytes:
        nonlocal introductions
        if asked[0] == API_VERSIONS.key:
            introductions += 1
            return introduce(*asked)
        return frame(*asked, NODES | {"brokers": [{"node_id": 1, "host": "127.0.0.1", "port": ports[0]}]})

    async def work(endpoint: Address) -> None:
        ports.append(endpoint.port)
        async with Cluster([Address("localhost", endpoint.port)]) as cluster:
            (one,), (other,) = await asyncio.gather(cluster.brokers(), cluster.brokers())
            assert one is other

    ask(script, work)
    assert introductions == 2  # to the bootstrap address, and to the broker


def test_a_broker_that_stops_reading_is_given_up_by_a_request_without_an_answer() -> None:
    spoken = [*SPOKEN, {"api_key": PRODUCE.key, "min_version": 9, "max_version": 9}]

    async def introduce_and_stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        version, correlation = int.from_bytes(request[2:4], "big"), int.from_bytes(request[4:8], "big")
        writer.write(frame(API_VERSIONS.key, version, correlation, {"error_code": 0, "api_keys": spoken}))
        await over.wait()
        writer.transport.abort()

    over = asyncio.Event()

    async def scenario() -> None:
        rows = [{"index": 0, "records": bytes(32 << 20)}]
        request = {"acks": 0, "timeout_ms": 1, "topic_data": [{"name": "t", "partition_data": rows}]}
        server = await asyncio.start_server(introduce_and_stall, "127.0.0.1", 0)
        async with server:
            connection = await connect(Address("127.0.0.1", server.sockets[0].getsockname()[1]), 3.0)
            with pytest.raises(ClientError, match=r"within 3 s"):
                await connection.notify(PRODUCE, request)
            assert connection.failure is not None
            await connection.close()
            over.set()
            await asyncio.sleep(0)

    asyncio.run(scenario())


def test_a_connection_that_failed_is_made_anew() -> None:
    async def work(endpoint: Address) -> None:
        async with Cluster([endpoint]) as cluster:
            (connection,) = await cluster.brokers()
            await connection.close()
            assert (await cluster.metadata([]))["cluster_id"] == "c"
            (again,) = await cluster.brokers()
            assert again is not connection

    def script(key: int, version: int, correlation: int) -> bytes:
        if key == API_VERSIONS.key:
            return introduce(key, version, correlation)
        return frame(key, version, correlation, NODES | {"brokers": here})

    here: list[dict[str, Any]] = []

    async def scenario(endpoint: Address) -> None:
        here.append({"node_id": 1, "host": endpoint.host, "port": endpoint.port, "rack": None})
        await work(endpoint)

    ask(script, scenario)
