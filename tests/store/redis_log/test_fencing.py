"""Two programs that both think they own a log: only one of them can append, and the other leaves no trace."""

import asyncio
import inspect
import re
from pathlib import Path

import pytest

from korvet_fast.errors import KorvetError, OutcomeUnknown, StoreError
from korvet_fast.store.redis.durability import rights
from korvet_fast.store.types import LogFormat, NotLeader, OffsetConflict
from store.redis_log.redis_namespace import LOG, RedisNamespace, log_of
from store.scene import Scene


async def test_not_acquired(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        with pytest.raises(NotLeader):
            scene.append(LOG, 0, 1)
        scene.store.shared.declare(LOG, place.log_format)
        with pytest.raises(NotLeader):
            scene.append(LOG, 0, 1)


@pytest.mark.parametrize("written", [0, 3])
async def test_former_owner(place: RedisNamespace, written: int) -> None:
    """The former owner's appends are refused, those sent before too, and nothing changes."""
    async with place.scene() as former, place.scene() as owner:
        assert (await former.acquire(LOG, epoch=4)).epoch == 4
        if written:
            await former.fill(LOG, written)
        assert (await owner.acquire(LOG, epoch=4)).epoch == 5
        before = place.snapshot()
        appendings = [former.append(LOG, written + number, 1) for number in range(200)]
        for appending in appendings:
            for future in (appending.stored, appending.durable):
                with pytest.raises(OffsetConflict) as refused:
                    await future
                assert refused.value.fenced
        assert place.snapshot() == before
        with pytest.raises(NotLeader):
            former.append(LOG, written, 1)
        assert (await owner.fill(LOG, 2)).end == written + 2
        assert await owner.read_all(LOG) == list(range(written + 2))


async def test_a_former_owner_can_ask_whether_it_still_is_the_owner(place: RedisNamespace) -> None:
    async with place.scene() as former, place.scene() as owner:
        assert not await former.store.shared.is_leader(LOG)
        await former.acquire(LOG)
        assert await former.store.shared.is_leader(LOG)
        await owner.acquire(LOG)
        assert not await former.store.shared.is_leader(LOG)
        assert await owner.store.shared.is_leader(LOG)
        await former.acquire(LOG)
        assert await former.store.shared.is_leader(LOG)


async def test_finding_1_8_records_cannot_be_deleted_by_a_former_owner(place: RedisNamespace) -> None:
    """Its last append is refused while the cut waits for it: the client is told who to ask."""
    async with place.scene() as former, place.scene() as owner:
        await former.acquire(LOG)
        await former.fill(LOG, 1)
        await owner.acquire(LOG)
        former.append(LOG, 1, 1)
        with pytest.raises(KorvetError) as refused:
            await former.delete_records(LOG, 2)
        assert refused.value.error == "NOT_LEADER_OR_FOLLOWER"
        assert await owner.read_all(LOG) == [0]


async def test_former_owner_with_higher_offsets(place: RedisNamespace) -> None:
    """Its ids lie above all that is there, so Redis itself would take them."""
    async with place.scene() as former, place.scene() as owner:
        await former.acquire(LOG)
        await former.fill(LOG, 3)
        log = log_of(former)
        await owner.acquire(LOG)
        before = place.snapshot()
        log.end += 5000
        with pytest.raises(OffsetConflict):
            await former.append(LOG, 5003, 2).stored
        assert place.snapshot() == before


async def test_same_program_takes_it_again(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        first = await scene.acquire(LOG)
        await scene.fill(LOG, 2)
        again = await scene.acquire(LOG, floor=7)
        assert again.epoch == first.epoch + 1
        assert (again.bounds.end, again.last_record_end) == (7, 2)
        assert (await scene.fill(LOG, 1)).end == 8
        assert await scene.read_all(LOG) == [0, 1, 7]
        assert (await scene.acquire(LOG, floor=3)).last_record_end == 8


async def test_acquire_waits_for_what_is_under_way(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.acquire(LOG)
        futures = [scene.append(LOG, number, 1).stored for number in range(20)]
        assert (await scene.acquire(LOG)).bounds.end == 20
        assert all(future.done() and future.exception() is None for future in futures)


async def test_gap(place: RedisNamespace) -> None:
    """Where records were lost, the log goes on above them, and readers go over the hole."""
    async with place.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 3)
        granted = await scene.acquire(LOG, floor=2000)
        assert (granted.bounds.end, granted.bounds.start, granted.last_record_end) == (2000, 0, 3)
        assert await scene.read_offsets(LOG, 1000, 100) == []
        assert (await scene.acquire(LOG)).last_record_end == 3
        await scene.append(LOG, 2000, 2).durable
        assert await scene.read_all(LOG) == [0, 1, 2, 2000, 2001]
        assert (await scene.read_offsets(LOG, 1000, 1))[0] == 2000
        assert await scene.find_time(LOG, 1) != []
        assert (await scene.acquire(LOG)).last_record_end == 2002


async def test_two_owners_in_turn(place: RedisNamespace) -> None:
    """Each takes the log over whenever it is refused; no offset is acknowledged twice, none of those is missing."""
    async with place.scene() as one, place.scene() as other:
        acked: dict[int, str] = {}
        taken = 0

        async def write(name: str, scene: Scene) -> None:
            nonlocal taken
            end = -1
            while len(acked) < 300:
                try:
                    if end < 0:
                        end = (await scene.acquire(LOG)).bounds.end
                        taken += 1
                    for number, appending in enumerate([scene.append(LOG, end + number, 1) for number in range(3)]):
                        await appending.stored
                        assert end + number not in acked
                        acked[end + number] = name
                    end += 3
                except (OffsetConflict, StoreError):
                    end = -1

        await asyncio.gather(write("one", one), write("other", other))
        assert taken > 2
        assert set(acked) <= set(await one.read_all(LOG))


async def test_dropped_by_another(place: RedisNamespace) -> None:
    async with place.scene() as former, place.scene() as other:
        await former.acquire(LOG)
        await former.fill(LOG, 2)
        await other.drop(LOG)
        with pytest.raises(OffsetConflict) as refused:
            await former.append(LOG, 2, 1).stored
        assert refused.value.fenced
        assert place.snapshot() == ([],)
        # A log of the same name has nothing to do with the one before.
        await other.acquire(LOG)
        assert (await other.fill(LOG, 1)).end == 1


async def test_layout_is_fixed(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.acquire(LOG)
        entries_layout = place.log_format.entries_layout
        other = LogFormat(9 if entries_layout else 10, entries_layout=True)
        present = "entries:10" if entries_layout else "batches:0"
        with pytest.raises(StoreError, match=f"laid out as {present}, not as entries:{other.bits}"):
            await scene.store.shared.acquire(LOG, other, epoch=0, floor=0)
        with pytest.raises(NotLeader):
            scene.append(LOG, 0, 1)
        assert (await scene.acquire(LOG)).bounds.end == 0


def sign_in(place: RedisNamespace, *rights: str) -> str:
    """A user with all rights but what `rights` take away; the URL as which it comes."""
    place.call("ACL", "SETUSER", "me", "reset", "on", ">p", "~*", "&*", "+@all", *rights)
    return place.server.url.replace("//", "//me:p@")


@pytest.mark.parametrize("right", ["xsetid", "xinfo|stream", "hmget", "exists"])
async def test_finding_1_6_a_server_that_does_not_let_the_fence_work_is_not_used(
    own_place: RedisNamespace, right: str
) -> None:
    url = sign_in(own_place, f"-{right}")
    with pytest.raises(StoreError) as refused:
        async with own_place.scene(url):
            pass
    asked = f"grant it ACL SETUSER <user> +{right} ~{own_place.maker.namespace}:*"
    assert asked in refused.value.detail
    assert own_place.call("KEYS", "*") == []


async def test_finding_1_6_a_user_who_may_not_use_the_keys_is_refused(own_place: RedisNamespace) -> None:
    namespace = own_place.maker.namespace
    url = sign_in(own_place, "resetkeys", f"~{namespace}:*")
    with pytest.raises(StoreError, match="grant it ACL SETUSER"):
        async with own_place.scene(url):
            pass
    async with own_place.scene(sign_in(own_place, "resetkeys", f"~{namespace}:*", f"~{{{namespace}:*")) as scene:
        await scene.acquire(LOG)
        assert (await scene.fill(LOG, 2)).end == 2


@pytest.mark.parametrize("right", ["xsetid", "xinfo"])
async def test_finding_1_6_what_passes_a_fence_that_fails_is_not_acknowledged(
    own_place: RedisNamespace, right: str
) -> None:
    """The right is taken away while the former owner runs: what it sends goes in, and the log's state stays."""
    async with own_place.scene(sign_in(own_place)) as former, own_place.scene() as owner:
        await former.acquire(LOG)
        await former.fill(LOG, 1)
        await owner.acquire(LOG)
        before = own_place.call("HGETALL", own_place.state_key)
        own_place.call("ACL", "SETUSER", "me", f"-{right}")
        appending = former.append(LOG, 1, 2)
        for future in (appending.stored, appending.durable):
            with pytest.raises(OutcomeUnknown):
                await future
        assert own_place.call("HGETALL", own_place.state_key) == before


def test_every_command_of_the_scripts_is_a_right_that_is_looked_for() -> None:
    """The commands of all files of the store; only a script can run them without Redis refusing later commands."""
    place = Path(inspect.getfile(rights)).parents[1]
    text = "".join(path.read_text() for path in place.rglob("*.py"))
    called = re.findall(r"redis\.p?call\('([A-Z]+)'(?:, '([A-Z]+)')?", text)
    needed = {name.lower() for pair in called for name in ["|".join(filter(None, pair))]}
    assert {"hmget", "xsetid", "xinfo|stream", "memory|usage"} <= needed
    assert {f"+{name}" for name in needed} <= rights._RIGHTS.keys()


@pytest.mark.parametrize("right", ["hgetall", "xread", "multi", "unlink", "client|unblock", "eval"])
async def test_a_server_is_not_used_where_any_right_is_missing(own_place: RedisNamespace, right: str) -> None:
    with pytest.raises(StoreError, match=re.escape(f"+{right} ") if right != "multi" else "MULTI"):
        async with own_place.scene(sign_in(own_place, f"-{right}")):
            pass


async def test_the_rights_looked_for_are_those_that_a_store_uses(own_place: RedisNamespace) -> None:
    """With no other a whole store runs, and nothing that it runs is missing in the table."""
    namespace = own_place.maker.namespace
    granted = ("resetkeys", f"~{namespace}:*", f"~{{{namespace}:*", "-@all", *rights._RIGHTS, "+config|get", "+waitaof")
    url = sign_in(own_place, *granted)
    own_place.call("CONFIG", "RESETSTAT")
    async with own_place.scene(url) as scene:
        assert (await scene.fill(LOG, 3, 5, sync=True)).end == 8
        assert await scene.read_all(LOG) == list(range(8))
        assert await scene.find_time(LOG, 1)
        assert (await scene.delete_records(LOG, 3)).start == 3
        scene.store.groups.mirror_offset(LOG, "group", scene.origin + 4)
        assert await scene.store.save("topics/a", b"1", None)
        assert await scene.store.scan("topics/") == {"topics/a": b"1"}
        await scene.drop(LOG)
    assert own_place.call("ACL", "LOG") == []
    used = {name.removeprefix("cmdstat_") for name in own_place.server.info("commandstats")}
    ours = {f"+{name}" for name in used} - {
        "+acl|log",
        "+info",
        "+config|resetstat",
        "+config|get",
        "+waitaof",
        "+auth",
    }
    assert ours <= rights._RIGHTS.keys(), ours - rights._RIGHTS.keys()
