"""replication.peers is another text than at the last start."""

from pathlib import Path

import pytest

from korvet_fast.client.replica_peers import ReplicaPeers
from korvet_fast.config import read_settings
from korvet_fast.core.replication.replication import Replication
from korvet_fast.core.replication.secret import Secret
from korvet_fast.core.replication.static_peers import StaticPeers
from korvet_fast.endpoint import Address
from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore


async def test_a_start_without_the_leader_of_the_metadata_log_says_what_to_do(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    await store.open()
    assert await store.save("vote", b'{"epoch": 3, "leader": 9}', None)
    await store.close()
    static = StaticPeers(1, dict.fromkeys((1, 2), Address("127.0.0.1", 1)), Secret(b"what all of them know"))
    replication = Replication(static, EmbeddedStore(tmp_path), ReplicaPeers(static), read_settings([]))
    with pytest.raises(StoreError, match=r"replication.peers has no broker 9, .* lead @registry 0 --broker N$"):
        await replication.open()
    store = EmbeddedStore(tmp_path)
    await store.open()  # the directory is free
    await store.close()
