"""What a caller of the asyncio producer does with transactions."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from korvet_fast.client.producer.transaction_state import TransactionState
from korvet_fast.client.producer.transactions import Transactions
from korvet_fast.errors import SettingError


class TransactionCalls:
    """A producer with `transactional.id` sends in transactions only; one without has none.

    `enter`: raises `RuntimeError` in another event loop than that of the first call.
    """

    def __init__(self, transactions: Transactions | None, enter: Callable[[], object]) -> None:
        self._transactions = transactions
        self._enter = enter

    async def init_transactions(self) -> None:
        """Once, before the first transaction, with `transactional.id`: another producer of that name is fenced, and its
        transaction ended. Raises `TransactionsUnavailable` if the broker has none, and `ClientError`.
        """
        self._enter()
        await self._named_transactions().init()

    def begin_transaction(self) -> None:
        """What is sent from here on is seen by consumers with isolation.level=read_committed when it is committed."""
        self._named_transactions().state.apply("begin")

    async def commit_transaction(self) -> None:
        """Deliver everything, and commit it. Raises `TransactionError`: if its outcome is UNKNOWN nobody knows whether
        it was committed, and `init_transactions` comes next; otherwise it was not, and `abort_transaction` comes next.
        """
        self._enter()
        await self._named_transactions().commit()

    async def abort_transaction(self) -> None:
        """Withdraw what was not sent, and abort the rest. Raises `TransactionError` as `commit_transaction`."""
        self._enter()
        await self._named_transactions().abort()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """`async with p.transaction(): ...` commits at its end, and aborts if it raises."""
        transactions = self._named_transactions()
        self.begin_transaction()
        try:
            yield
            await self.commit_transaction()
        except BaseException:
            if transactions.state.state in (TransactionState.OPEN, TransactionState.FAILED):
                await self.abort_transaction()
            raise

    def _named_transactions(self) -> Transactions:
        if self._transactions is None:
            raise SettingError("transactions need a name: give the producer a transactional.id")
        return self._transactions
