"""ACLs in the registry: kept, taken over by others, written again after a loss, bounded, and closed when unsure."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from korvet_fast.core.acls import registry as registry_module
from korvet_fast.core.acls.authorizer import Authorizer
from korvet_fast.core.acls.binding import AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType
from korvet_fast.core.acls.registry import AclRegistry
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.generation import StoreGeneration
from korvet_fast.errors import Errors, KorvetError, StoreError
from shared_store import Server, SharedStore

READ = Operation.READ
PATIENCE = 3  # checks


def binding(name: str, operation: Operation = READ) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, name, PatternType.LITERAL, "User:ann", "*", operation, Permission.ALLOW)


class Node:
    """The part of a broker that has to do with ACLs."""

    def __init__(self, server: Server) -> None:
        self.store = SharedStore(server)
        self.generation = StoreGeneration()
        self.authorizer = Authorizer()
        self.acls = AclRegistry(self.store, self.generation, self.authorizer, PATIENCE)

    def allows(self, name: str) -> bool:
        return self.authorizer.find_permissions("User:ann", "::1").allows(READ, ResourceType.TOPIC, name)


def scene(scenario: Callable[[Server, Node, Node], Awaitable[None]]) -> None:
    async def run() -> None:
        server = Server()
        one, two = Node(server), Node(server)
        for node in (one, two):
            await node.store.open()
            await node.acls.refresh()
        await scenario(server, one, two)

    asyncio.run(run())


def test_what_one_broker_adds_or_removes_holds_at_the_others() -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        await one.acls.create([binding("a"), binding("b"), binding("a")], "User:root")
        assert (one.allows("a"), two.allows("a")) == (True, False)
        await two.acls.refresh()
        assert two.allows("a")
        # Both at once, one of them with what the other has not read yet.
        await asyncio.gather(
            one.acls.create([binding("c"), binding("a")], "x"), two.acls.create([binding("c"), binding("d")], "y")
        )
        found = await two.acls.delete([AclFilter(name="a"), AclFilter(name="none")], "y", BackgroundPace())
        assert found == [[binding("a")], []]
        await one.acls.refresh()
        for node in (one, two):
            assert sorted(one.name for one in node.authorizer.index) == ["b", "c", "d"]
            assert not node.allows("a")

    scene(scenario)


def test_more_acls_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MOST", 3)

    async def scenario(server: Server, one: Node, two: Node) -> None:
        await one.acls.create([binding("a"), binding("b")], "x")
        with pytest.raises(KorvetError) as caught:
            await two.acls.create([binding("c"), binding("d")], "x")
        assert caught.value.error is Errors.POLICY_VIOLATION
        await two.acls.create([binding("a"), binding("b"), binding("c")], "x")

    scene(scenario)


def test_a_value_that_cannot_be_read_lets_nobody_in() -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        await one.acls.create([binding("a")], "x")
        for value in (
            b"no json",
            b"[2, 3]",
            b'[2, "a", 3, "no colon", "*", 3, 3]',
            b'[2, "a", 3, "User:x", "*", 99, 3]',
        ):
            assert await one.store.save("acls/broken", value, None)
            with pytest.raises(StoreError, match="nobody but"):
                await one.acls.refresh()
            assert not one.allows("a")
            assert await one.store.save("acls/broken", None, value)
            await one.acls.refresh()
            assert one.allows("a")

    scene(scenario)


def test_a_store_that_fails_leaves_the_acls_as_they_were_but_not_for_ever() -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        await one.acls.create([binding("a")], "x")

        async def fail(*_: object) -> int:
            raise StoreError("it is away")

        for _ in range(2 * PATIENCE):
            await one.acls.expire()
            await one.acls.refresh()
            assert one.allows("a")
        working, one.store.version = one.store.version, fail  # type: ignore[method-assign]
        for _ in range(PATIENCE):
            await one.acls.expire()
            with pytest.raises(StoreError):
                await one.acls.refresh()
            assert one.allows("a")
        await one.acls.expire()
        assert not one.allows("a")
        await two.acls.create([binding("b")], "x")
        one.store.version = working  # type: ignore[method-assign]
        await one.acls.refresh()
        assert (one.allows("a"), one.allows("b")) == (True, True)

    scene(scenario)


def test_acls_that_a_broken_history_lost_are_written_again() -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        await one.acls.create([binding("a"), binding("b")], "x")
        await two.acls.refresh()
        for key, value in (await one.store.scan("acls/")).items():
            assert await one.store.save(key, None, value)
        for _ in range(PATIENCE + 1):
            await two.acls.expire()  # the store was away for long before its history was another one
        assert (one.allows("a"), two.allows("a")) == (True, False)
        for node in (one, two):
            node.generation.number += 1
        for node in (two, one):
            await node.acls.refresh()
            assert node.allows("a")
        assert len(await two.store.scan("acls/")) == 2

    scene(scenario)
