"""All keys under a prefix may be more than one answer can carry to another broker."""

from pathlib import Path

import pytest

from korvet_fast.client import replica_peers
from korvet_fast.core.replication import metadata_log
from korvet_fast.core.replication.peers import KeyAnswer, KeyRequest, KeyVerb
from replicated_scene import ReplicatedScene

VALUE = bytes(24 << 20)


async def test_a_scan_comes_in_answers_that_can_be_carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        expected = {f"k/{number}": VALUE for number in range(4)}
        for key, value in expected.items():
            assert await scene.stores[1].save(key, value, None)
        assert await scene.stores[1].save("l/other", b"x", None)
        sizes: list[int] = []
        serve = scene.brokers[1].serve_keys

        async def serve_keys(request: KeyRequest) -> KeyAnswer:
            answer = await serve(request)
            sizes.append(sum(len(key) + len(value) for key, value in answer.rows.items()))
            return answer

        monkeypatch.setattr(scene.brokers[1], "serve_keys", serve_keys)
        found = await scene.stores[2].scan("k/")
        assert list(found) == list(expected)
        assert found == expected
        assert max(sizes) < replica_peers._LARGEST


async def test_a_key_has_more_bytes_than_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_log, "LARGEST_SAVE", 1000)
    async with ReplicatedScene(tmp_path, count=1) as scene:
        for letter in "abcd":
            assert await scene.stores[1].save("k/" + "\N{SNOWMAN}" * 100 + letter, b"v", None)
        rows = (await scene.brokers[1].serve_keys(KeyRequest(KeyVerb.SCAN, "k/"))).rows
        assert sum(len(key.encode()) + len(value) for key, value in rows.items()) <= 1000
        assert len(await scene.stores[1].scan("k/")) == 4
