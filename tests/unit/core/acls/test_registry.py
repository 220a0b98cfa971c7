"""ACLs in the registry: kept, taken over by others, written again after a loss, bounded, and closed when unsure."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

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
        self.authorizer = Authorizer(frozenset({"User:root"}))
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


DAMAGED = (
    b"no json",
    b"[2, 3]",
    b"7",
    b'[2, "a", 3, "no colon", "*", 3, 3]',
    b'[2, "a", 3, "User:x", "*", 99, 3]',
    b'[2, "a", 3, "User:x", "*", 3, 3]',  # of another key
)


@pytest.mark.parametrize("value", DAMAGED)
def test_a_damaged_document_lets_nobody_in_until_it_is_mended(value: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        await one.acls.create([binding("a")], "x")
        server.keys["acls/broken"] = value
        third = Node(server)  # starts over it
        await third.acls.refresh()
        assert await one.store.save("acls/other", b"other", None)
        for node in (one, two, third):
            for _ in range(2):
                await node.acls.refresh()
                assert (node.allows("a"), node.authorizer.is_ready) == (False, False)
            assert node.authorizer.find_permissions("User:root", "::1").allows(READ, ResourceType.TOPIC, "a")
            assert list(node.authorizer.index) == [binding("a")]
        await one.acls.create([binding("b")], "x")
        assert not one.allows("b")
        assert await one.store.save("acls/other", None, b"other")
        del server.keys["acls/broken"]  # by hand: the store does not count it
        for node in (one, two, third):
            await node.acls.refresh()
            assert (node.allows("a"), node.allows("b")) == (True, True)

    scene(scenario)
    assert caplog.text.count("the registry has damaged ACLs") == 4  # `third` found one and then two


def test_a_super_user_removes_damaged_documents_by_removing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_AT_ONCE", 2)

    async def scenario(server: Server, one: Node, two: Node) -> None:
        await one.acls.create([binding("a")], "x")
        server.keys |= {f"acls/{number}": b"damaged" for number in range(5)}
        assert await one.acls.delete([AclFilter(name="a")], "User:root", BackgroundPace()) == [[binding("a")]]
        await one.acls.create([binding("a")], "x")
        assert not one.allows("a")
        assert await one.acls.delete([AclFilter()], "User:root", BackgroundPace()) == [[binding("a")]]
        assert server.keys.keys() & {f"acls/{number}" for number in range(5)} == set()
        await one.acls.create([binding("b")], "x")
        await two.acls.refresh()
        for node in (one, two):
            assert (node.allows("a"), node.allows("b")) == (False, True)

    scene(scenario)


def test_damaged_documents_that_change_meanwhile_stay_and_let_nobody_in() -> None:
    async def scenario(server: Server, one: Node, two: Node) -> None:
        assert await one.store.save("acls/broken", b"damaged", None)
        save = one.store.save

        async def others_are_faster(*given: Any) -> bool:
            server.keys["acls/broken"] += b"!"
            return await save(*given)

        one.store.save = others_are_faster  # type: ignore[method-assign]
        with pytest.raises(StoreError, match="other brokers change ACLs"):
            await one.acls.delete([AclFilter()], "User:root", BackgroundPace())
        assert not one.authorizer.is_ready

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
