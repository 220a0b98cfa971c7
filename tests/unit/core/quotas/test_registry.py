"""Quotas in the registry: kept, taken over by others, written again after a loss, bounded, and legible."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

import pytest

from korvet_fast.core.generation import StoreGeneration
from korvet_fast.core.quotas import registry as registry_module
from korvet_fast.core.quotas.client_quotas import ClientQuotas
from korvet_fast.core.quotas.entity import DEFAULT, LONGEST_NAME, QuotaEntity, QuotaKey
from korvet_fast.core.quotas.registry import QuotaRegistry
from korvet_fast.errors import Errors, KorvetError, StoreError
from shared_store import Server, SharedStore

ANN = QuotaEntity("ann", None)
ALL = QuotaEntity(DEFAULT, DEFAULT)
PRODUCE, FETCH = QuotaKey.PRODUCE, QuotaKey.FETCH


class Node:
    """The part of a broker that has to do with quotas."""

    def __init__(self, server: Server) -> None:
        self.store = SharedStore(server)
        self.generation = StoreGeneration()
        self.quotas = ClientQuotas(lambda: 0.0)
        self.registry = QuotaRegistry(self.store, self.generation, self.quotas)

    async def alter(self, entity: QuotaEntity, *, validate: bool = False, **changes: float | None) -> None:
        await self.registry.alter(entity, changes, "User:root", validate=validate)


def scene(scenario: Callable[[Server, Node, Node], Awaitable[None]]) -> None:
    async def run() -> None:
        server = Server()
        one, two = Node(server), Node(server)
        for node in (one, two):
            await node.store.open()
            await node.registry.refresh()
        await scenario(server, one, two)

    asyncio.run(run())


def test_what_one_broker_changes_holds_at_the_others() -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        await one.alter(ANN, producer_byte_rate=100.0, consumer_byte_rate=5.0)
        await one.alter(ALL, request_percentage=0.5)
        assert not two.quotas.is_set
        await two.registry.refresh()
        assert two.quotas.entities == {ANN: {PRODUCE: 100, FETCH: 5}, ALL: {QuotaKey.REQUEST: 0.5}}
        # Each changes another value of the same entity, one of them without having read the other's change.
        await one.alter(ANN, producer_byte_rate=None)
        await two.alter(ANN, consumer_byte_rate=6.0)
        assert two.quotas.entities[ANN] == {FETCH: 6}
        await asyncio.gather(one.alter(ANN, producer_byte_rate=1.0), two.alter(ANN, controller_mutation_rate=2.0))
        for node in (one, two):
            await node.registry.refresh()
            assert node.quotas.entities[ANN] == {FETCH: 6, PRODUCE: 1, QuotaKey.MUTATION: 2}
        await two.alter(ANN, producer_byte_rate=None, consumer_byte_rate=None, controller_mutation_rate=None)
        await two.alter(ALL, request_percentage=None)
        await one.registry.refresh()
        assert not one.quotas.is_set
        assert await one.store.scan("quotas/") == {}

    scene(scenario)


def test_only_said_to_be_legal_nothing_changes() -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        await one.alter(ANN, producer_byte_rate=100.0, validate=True)
        assert not one.quotas.is_set
        with pytest.raises(KorvetError):
            await one.alter(ANN, producer_byte_rate=-1.0, validate=True)
        assert await one.store.scan("quotas/") == {}

    scene(scenario)


def test_of_an_entity_all_is_changed_or_nothing() -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        with pytest.raises(KorvetError):
            await one.alter(ANN, producer_byte_rate=100.0, consumer_byte_rate=-1.0)
        assert not one.quotas.is_set

    scene(scenario)


def test_more_entities_than_the_limit_and_longer_names_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MOST", 2)

    async def scenario(server: Server, one: Node, two: Node) -> None:
        for name in ("a", "b"):
            await one.alter(QuotaEntity(name, None), producer_byte_rate=1.0)
        with pytest.raises(KorvetError) as caught:
            await one.alter(ANN, producer_byte_rate=1.0)
        assert caught.value.error is Errors.POLICY_VIOLATION
        await one.alter(QuotaEntity("a", None), producer_byte_rate=2.0)
        with pytest.raises(KorvetError, match="characters"):
            await one.alter(QuotaEntity(None, "x" * (LONGEST_NAME + 1)), producer_byte_rate=2.0)

    scene(scenario)


@pytest.mark.parametrize(
    "value",
    [
        b"no json",
        b"[]",
        b"{}",
        b'{"entity": ["ann"], "quotas": {}}',
        b'{"entity": ["ann", null], "quotas": {"x": 1}}',
        b'{"entity": ["ann", null], "quotas": []}',
        b'{"entity": [["ann"], null], "quotas": {"producer_byte_rate": 1}}',
        b'{"entity": [1, null], "quotas": {"producer_byte_rate": 1}}',
    ],
)
def test_a_document_that_cannot_be_read_is_named_and_can_be_written_over(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        await one.alter(ANN, producer_byte_rate=1.0)
        await one.alter(ALL, producer_byte_rate=2.0)
        ((key, before),) = [
            row for row in (await one.store.scan("quotas/")).items() if json.loads(row[1])["entity"][0] == "ann"
        ]
        assert await one.store.save(key, value, before)
        await two.registry.refresh()
        assert two.quotas.entities == {ALL: {PRODUCE: 2}}
        assert f"the quota under {key} in the registry cannot be read" in caplog.text
        await two.alter(ANN, producer_byte_rate=3.0)
        await one.registry.refresh()
        assert one.quotas.entities == {ANN: {PRODUCE: 3}, ALL: {PRODUCE: 2}}

    with caplog.at_level(logging.WARNING):
        scene(scenario)


def test_a_store_that_fails_leaves_the_quotas_as_they_were() -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        await one.alter(ANN, producer_byte_rate=1.0)

        async def fail(*_: object) -> int:
            raise StoreError("it is away")

        one.store.version = fail  # type: ignore[method-assign]
        with pytest.raises(StoreError):
            await one.registry.refresh()
        assert one.quotas.entities == {ANN: {PRODUCE: 1}}

    scene(scenario)


def test_somebody_who_is_always_faster_is_told() -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        async def refuse(*_: object) -> bool:
            return False

        one.store.save = refuse  # type: ignore[method-assign,assignment]
        with pytest.raises(StoreError, match="try again"):
            await one.alter(ANN, producer_byte_rate=1.0)
        assert not one.quotas.is_set

    scene(scenario)


def test_quotas_that_a_broken_history_lost_are_written_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        await one.alter(ANN, producer_byte_rate=1.0)
        await one.alter(ALL, producer_byte_rate=2.0)
        await two.registry.refresh()
        for key, value in (await one.store.scan("quotas/")).items():
            assert await one.store.save(key, None, value)
        for node in (one, two):
            node.generation.number += 1
        await asyncio.gather(one.registry.refresh(), two.registry.refresh())
        for node in (one, two):
            assert node.quotas.entities == {ANN: {PRODUCE: 1}, ALL: {PRODUCE: 2}}
        assert len(await one.store.scan("quotas/")) == 2

    with caplog.at_level(logging.WARNING):
        scene(scenario)
    assert "had forgotten 2 quotas" in caplog.text
