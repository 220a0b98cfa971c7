"""Users in the registry: how many there may be, what the log has of changes, and credentials that are damaged."""

import asyncio
import json
import logging

import pytest

from korvet_fast.core.authentication import users as users_module
from korvet_fast.core.authentication.scram import SCRAM_SHA_256, SCRAM_SHA_512
from korvet_fast.errors import Errors, KorvetError
from sasl_world import SHA_256, SHA_512, Keys, add_user, make_users


@pytest.mark.parametrize("block", [1, 2, 100])
def test_there_are_so_many_users_and_no_more(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(users_module, "MOST", 5)
    monkeypatch.setattr(users_module, "_BLOCK", block)

    async def run() -> None:
        users = make_users(Keys())
        answers = await asyncio.gather(*[add_user(users, f"u{one}", "x") for one in range(8)], return_exceptions=True)
        refused = [one for one in answers if one is not None]
        assert [type(one) for one in refused] == [KorvetError] * 3
        assert str(refused[0]) == "POLICY_VIOLATION: a cluster has 5 users at most: remove some"
        assert len(await users.list()) == 5
        await add_user(users, "u0", "another password")
        await users.alter("u1", {SCRAM_SHA_256: None, SCRAM_SHA_512: None}, "User:root")
        await add_user(users, "u9", "x")
        with pytest.raises(KorvetError) as caught:
            await add_user(users, "u10", "x")
        assert caught.value.error is Errors.POLICY_VIOLATION
        assert sorted(await users.list()) == ["u0", "u2", "u3", "u4", "u9"]

    asyncio.run(run())


def test_the_log_has_who_changed_whom_and_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    keys = Keys()

    async def run() -> None:
        users = make_users(keys)
        await add_user(users, "a\nnn", "a pear", SHA_256)
        kept = json.loads(keys.kept["users/" + b"a\nnn".hex()])[SHA_256]
        await users.alter("a\nnn", {SCRAM_SHA_256: None}, "User:bob")
        with pytest.raises(KeyError):
            await users.alter("a\nnn", {SCRAM_SHA_256: None}, "User:bob")
        for secret in ("pear", kept["salt"], kept["stored_key"], kept["server_key"]):
            assert secret not in caplog.text

    asyncio.run(run())
    assert caplog.messages == [
        f"user a\\nnn: {SHA_256} set, as User:root asked",
        f"user a\\nnn: {SHA_256} removed, as User:bob asked",
    ]


ROW = {"salt": "AAAA", "stored_key": "AAAA", "server_key": "AAAA", "iterations": 4096}


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\xff",
        b"[]",
        b"7",
        b'{"MD5": {}}',
        json.dumps({SHA_256: None}).encode(),
        json.dumps({SHA_256: ROW | {"salt": "?"}}).encode(),
        json.dumps({SHA_256: ROW | {"iterations": "4096"}}).encode(),
        json.dumps({SHA_256: ROW | {"iterations": 10**9}}).encode(),
        json.dumps({SHA_256: {"salt": "AAAA"}}).encode(),
    ],
)
def test_damaged_credentials_let_nobody_in_and_are_made_anew(damaged: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        keys = Keys()
        users = make_users(keys)
        await add_user(users, "bob", "a plum")
        unknown = await users.find("ann", SCRAM_SHA_256)
        keys.kept["users/" + b"ann".hex()] = damaged
        keys.kept["users/no digits"] = damaged
        assert await users.find("ann", SCRAM_SHA_256) == unknown
        assert list(await users.list()) == ["bob"]
        assert "give this user a password again" in caplog.text
        await add_user(users, "ann", "a pear", SHA_512)
        assert {name: len(found) for name, found in (await users.list()).items()} == {"ann": 1, "bob": 2}

    asyncio.run(run())
