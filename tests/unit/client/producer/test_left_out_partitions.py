"""A coordinator whose answer leaves partitions out has not added them: nothing is sent there, and it is asked again."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import TransactionError
from transaction_broker import ForgetfulCoordinator, Results

Run = Callable[[Callable[[], Awaitable[Any]]], Any]


async def commit_two(address: str, **settings: Any) -> None:
    fast = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 1, "transactional_id": "billing"}
    async with AsyncProducer(address, **fast | settings) as p:
        await p.init_transactions()
        async with p.transaction():
            for index in (0, 1):
                p.send("t", b"x", partition=index)


@pytest.mark.parametrize(
    "results",
    [[(0, 0)], [(0, 0), (7, 0)], [(0, 0), (1, 55), (1, 0)], [(0, 55), (1, 55)]],
    ids=["left out", "another one instead", "named twice", "not attempted"],
)
def test_a_partition_that_was_left_out_is_asked_for_again(run: Run, results: Results) -> None:
    broker = ForgetfulCoordinator(3, results)

    async def work() -> None:
        async with broker.run() as address:
            await commit_two(address)

    run(work)
    assert broker.outside == []
    assert sorted(broker.produced) == [0, 1]
    assert (broker.asked, broker.ends) == (4, [True])


def test_a_partition_that_is_always_left_out_ends_the_transaction(run: Run) -> None:
    broker = ForgetfulCoordinator(1 << 30)

    async def work() -> None:
        async with broker.run() as address:
            settings = {"delivery_timeout_ms": 300, "request_timeout_ms": 200}
            with pytest.raises(TransactionError):
                await commit_two(address, **settings)

    run(work)
    assert broker.produced == [], "a partition outside would not be committed"
    assert True not in broker.ends
