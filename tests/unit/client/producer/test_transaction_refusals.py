"""What the coordinator of transactions refuses is told in a sentence, with what to do; what passes is asked again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import ProducerFenced, TransactionError, TransactionsUnavailable
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.transactions import END_TXN
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS
from korvet_fast.wire.kafka.shapes.coordinators import FIND_COORDINATOR
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.producers import INIT_PRODUCER_ID
from scripted_broker import frame

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
# FindCoordinator without batches of keys: one answer, one error code.
SPOKEN = [(API_VERSIONS.key, 0, 3), (FIND_COORDINATOR.key, 0, 2), (INIT_PRODUCER_ID.key, 0, 4), (END_TXN.key, 0, 3)]


class Coordinator:
    """A broker with a coordinator. `refusals`: the codes of the next answers to a request, by its key. `lies`: fields
    of the next answers that give a producer id. `given`: the id and the epoch that the producer has in the end.
    """

    def __init__(self, **refusals: list[int]) -> None:
        self.finds = refusals.get("finds", [])
        self.inits = refusals.get("inits", [])
        self.lies: list[dict[str, int]] = []
        self.given: tuple[int, int] | None = None
        self.missing = -1  # the key of an API that it does not serve
        self.port = 0

    def answer(self, key: int) -> dict[str, Any]:
        if key == API_VERSIONS.key:
            keys = [
                {"api_key": key, "min_version": low, "max_version": high}
                for key, low, high in SPOKEN
                if key != self.missing
            ]
            return {"error_code": 0, "api_keys": keys}
        if key == FIND_COORDINATOR.key:
            code = self.finds.pop(0) if self.finds else 0
            return {"error_code": code, "error_message": None, "node_id": 1, "host": "127.0.0.1", "port": self.port}
        code = self.inits.pop(0) if self.inits else 0
        lie = self.lies.pop(0) if self.lies else {}
        return {"error_code": code, "producer_id": 7, "producer_epoch": 0, **lie}

    async def init(self) -> None:
        """Have a producer call `init_transactions` here."""
        writers: list[asyncio.StreamWriter] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.append(writer)
            try:
                while True:
                    request = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                    key, version = (int.from_bytes(request[at : at + 2], "big") for at in (0, 2))
                    writer.write(frame(key, version, int.from_bytes(request[4:8], "big"), self.answer(key)))
            except (asyncio.IncompleteReadError, ConnectionError):
                pass  # the producer has closed the connection
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            async with AsyncProducer(
                f"127.0.0.1:{self.port}", transactional_id="billing", retry_backoff_ms=1, retry_backoff_max_ms=1
            ) as p:
                await p.init_transactions()
                self.given = p._driver.pipeline.identity.current
        finally:
            server.close()
            for writer in writers:
                writer.close()
            await server.wait_closed()


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (31, r"grant IDEMPOTENT_WRITE on the cluster \(CLUSTER_AUTHORIZATION_FAILED\)"),
        (42, r"check the transactional\.id \(INVALID_REQUEST\)"),
        (48, r"abort the transaction, then begin again \(INVALID_TXN_STATE\)"),
        (49, r"abort the transaction, then call init_transactions \(INVALID_PRODUCER_ID_MAPPING\)"),
        (50, r"above the broker's transaction\.max\.timeout\.ms; give less \(INVALID_TRANSACTION_TIMEOUT\)"),
        (53, r"may not use the transactional\.id; grant WRITE and DESCRIBE on it \(TRANSACTIONAL_ID_AUTHOR"),
        (120, r"cannot be committed any more; abort the transaction, then begin again \(TRANSACTION_ABORTABLE\)"),
        (999, r"the broker refused \(error 999\)"),
    ],
)
def test_a_refusal_is_a_sentence(run: Run, code: int, sentence: str) -> None:
    with pytest.raises(ClientError, match=f"InitProducerId of 'billing': .*{sentence}"):
        run(Coordinator(inits=[code]).init)


@pytest.mark.parametrize("code", [47, 90])
def test_who_is_fenced_is_told_why_and_what_to_do(run: Run, code: int) -> None:
    with pytest.raises(ProducerFenced, match=r"or a transaction took longer than .*; close this one"):
        run(Coordinator(inits=[code]).init)


def test_a_coordinator_that_may_not_be_asked_for(run: Run) -> None:
    with pytest.raises(TransactionsUnavailable, match="no coordinator for transactions: this user may not use the"):
        run(Coordinator(finds=[53]).init)


def test_what_passes_is_asked_again(run: Run) -> None:
    coordinator = Coordinator(finds=[15, 14], inits=[16, 51, 14, 55])
    run(coordinator.init)
    assert coordinator.finds == coordinator.inits == []


def test_an_id_that_cannot_be_is_asked_for_again(run: Run) -> None:
    coordinator = Coordinator()
    coordinator.lies = [{"producer_id": -1}, {"producer_epoch": -1}, {"producer_id": -(1 << 63)}]
    run(coordinator.init)
    assert (coordinator.lies, coordinator.given) == ([], (7, 0))


@pytest.mark.parametrize("missing", [FIND_COORDINATOR, INIT_PRODUCER_ID])
def test_a_coordinator_that_cannot_be_asked_is_told_at_once(run: Run, missing: Message) -> None:
    """It was asked until `delivery.timeout.ms` was over."""
    coordinator = Coordinator()
    coordinator.missing = missing.key
    with pytest.raises(TransactionError, match=r"the coordinator of 'billing' cannot be asked: .*speaks none of"):
        run(coordinator.init)


@pytest.mark.parametrize("code", [13, 41, 56])
def test_a_coordinator_is_asked_again_as_kafka_does(run: Run, code: int) -> None:
    coordinator = Coordinator(finds=[code], inits=[code])
    run(coordinator.init)
    assert coordinator.finds == coordinator.inits == []
