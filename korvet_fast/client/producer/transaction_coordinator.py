"""The coordinator of a transactional producer: found, asked, and found again when it has moved (KIP-98)."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

from korvet_fast.client.backoff import Backoff
from korvet_fast.client.connection import Connection
from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.control_connection import ControlConnection, connect_in_time
from korvet_fast.client.producer.message import ProducerClosed
from korvet_fast.client.producer.transaction_refusals import explain_refusal
from korvet_fast.client.producer.transaction_state import TransactionError, TransactionsUnavailable
from korvet_fast.client.protocol.errors import ClientError, Unreachable, is_fatal, is_retriable_code
from korvet_fast.client.protocol.transactions import (
    END_TXN,
    OPERATION_NOT_ATTEMPTED,
    find_transaction_coordinator_request,
)
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.coordinators import FIND_COORDINATOR
from korvet_fast.wire.kafka.shapes.message import Message

MOVED: Final = frozenset({15, 16})  # COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR


class CoordinatorRefused(ClientError):
    """The coordinator answered with an error that does not pass. `code`: which."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


class TransactionCoordinator:
    """Asks the coordinator until it answers for good, `delivery.timeout.ms` long."""

    def __init__(self, config: ProducerConfig, control: ControlConnection, random: Random) -> None:
        assert config.transactional_id is not None, "for transactional producers"
        self._id = config.transactional_id
        self._config = config
        self._control = control
        self._backoff = Backoff(config.backoff, config.backoff_max, random)
        self._connection: Connection | None = None

    async def ask(
        self, message: Message, values: Mapping[str, Any], codes: Callable[[Mapping[str, Any]], Sequence[int]]
    ) -> dict[str, Any]:
        """The answer in which no error is left. `codes`: those of an answer; `ClientError` for one that cannot be.

        Raises `CoordinatorRefused`, and `ClientError` if there was no answer in time.
        """
        try:
            async with asyncio.timeout(self._config.delivery_timeout):
                return await self._ask(message, values, codes)
        except TimeoutError:
            limit = f"delivery.timeout.ms ({self._config.delivery_timeout:g} s)"
            raise Unreachable(f"the coordinator of {self._id!r} did not take {message.name} within {limit}") from None

    async def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _ask(
        self, message: Message, values: Mapping[str, Any], codes: Callable[[Mapping[str, Any]], Sequence[int]]
    ) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        while True:
            try:
                answer = await (await self._find()).request(message, {"transactional_id": self._id, **values})
                found = {code for code in codes(answer) if code}
            except (TransactionError, ProducerClosed):
                raise
            except ClientError as error:
                await self.close()
                if is_fatal(error):
                    sentence = f"the coordinator of {self._id!r} cannot be asked: {error}"
                    raise TransactionError(sentence, cause=error) from error
            else:
                if not found:
                    self._backoff.succeed()
                    return answer
                if refused := {code for code in found if not _passes(code)}:
                    code = min(refused)
                    raise CoordinatorRefused(f"{message.name} of {self._id!r}: {explain_refusal(code)}", code)
                if found & MOVED:
                    await self.close()
            self._control.refuse_ended()
            await asyncio.sleep(self._backoff.fail(loop.time()) - loop.time())

    async def _find(self) -> Connection:
        if self._connection is not None and self._connection.failure is None:
            return self._connection
        answer = await self._control.request(FIND_COORDINATOR, find_transaction_coordinator_request(self._id))
        row = answer["coordinators"][0] if answer.get("coordinators") else answer
        if row["error_code"]:
            reason = explain_refusal(row["error_code"], row.get("error_message"))
            if _passes(row["error_code"]):
                raise Unreachable(f"the coordinator of {self._id!r} is not there yet: {reason}")
            raise TransactionsUnavailable(f"no coordinator for transactions: {reason}")
        address = Address(row["host"], row["port"])
        connection = await connect_in_time(address, self._config)
        if not connection.speaks(END_TXN):
            await connection.close()
            raise TransactionsUnavailable(f"the broker at {address} has no transactions; send without transactional.id")
        self._connection = await self._control.keep(connection)
        return self._connection


def _passes(code: int) -> bool:
    """Whether the same request may succeed later."""
    return code == OPERATION_NOT_ATTEMPTED or is_retriable_code(code)
