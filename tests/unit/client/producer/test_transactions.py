"""Transactions at a broker of ours, which has none: it says so, and nothing is sent."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from broker_process import BrokerProcess
from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import Message, TransactionError, TransactionsUnavailable
from korvet_fast.errors import SettingError

Run = Callable[[Callable[[], Awaitable[Any]]], Any]


def test_our_broker_refuses_in_a_sentence(run: Run, broker: BrokerProcess) -> None:
    async def work() -> None:
        async with AsyncProducer(broker.bootstrap, transactional_id="billing") as p:
            sentence = "no coordinator for transactions: this broker serves no transactions"
            with pytest.raises(TransactionsUnavailable, match=sentence):
                await p.init_transactions()
            with pytest.raises(TransactionError, match="call init_transactions first"):
                p.begin_transaction()
            for send in (p.send, p.try_send):
                with pytest.raises(TransactionError, match="no send now; call init_transactions first"):
                    send("t", b"x")
            with pytest.raises(TransactionError, match="no send now"):
                await p.send_many("t", None, [b"x"])
            with pytest.raises(TransactionError, match="no send now"):
                await p.input.put(Message("t", b"x"))
        assert p.metrics().accepted == 0

    run(work)


def test_transactions_need_a_name(run: Run) -> None:
    async def work() -> None:
        async with AsyncProducer("127.0.0.1:1") as p:
            with pytest.raises(SettingError, match=r"give the producer a transactional\.id"):
                p.begin_transaction()

    run(work)


@pytest.mark.parametrize("settings", [{"acks": "1"}, {"enable_idempotence": False}, {"on_failure": "continue"}])
def test_they_need_idempotence_and_end_with_a_failure(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="needs"):
        AsyncProducer("127.0.0.1:1", transactional_id="billing", **settings)
