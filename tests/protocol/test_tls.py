"""Kafka's protocol inside TLS, with records whose bytes are a file's."""

from pathlib import Path
from random import Random

import pytest

from kafka_server import kafka_server, make_batch, run
from korvet_fast.core.fetch.service import PartitionFetch
from tls_world import Authority

LARGE = Random(1).randbytes(900_000)


def test_records_of_every_size_come_back(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def scenario() -> None:
        async with kafka_server(tmp_path / "data", certificates=authority.certificates()) as server:
            client = await server.connect(authority.client())
            await client.create("t")
            for offset, value in enumerate((b"small", LARGE[:70_000], LARGE)):
                batch = make_batch(value)
                assert (await client.produce("t", batch))["error_code"] == 0
                row = await client.fetch("t", offset, partition_max_bytes=1 << 21)
                assert bytes(row["records"])[61:] == bytes(batch)[61:]
            row = await client.fetch("t", 0, partition_max_bytes=1 << 21)
            assert len(row["records"]) > 970_000

    run(scenario)


def test_what_is_encrypted_is_no_view_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is cut short while bytes of it are encrypted would end the process."""
    authority = Authority(tmp_path)
    kinds: list[set[type]] = []
    read = PartitionFetch.read

    async def note(self: PartitionFetch, left: int) -> int:
        size = await read(self, left)
        kinds.append({type(memoryview(part).obj) for part in self.records})
        return size

    monkeypatch.setattr(PartitionFetch, "read", note)

    async def scenario() -> None:
        for certificates in (None, authority.certificates()):
            data = tmp_path / ("plain" if certificates is None else "encrypted")
            async with kafka_server(data, certificates=certificates) as server:
                client = await server.connect(None if certificates is None else authority.client())
                await client.create("t")
                await client.produce("t", make_batch(LARGE))
                for _ in range(3):
                    row = await client.fetch("t", 0, partition_max_bytes=1 << 21)
                    assert LARGE in bytes(row["records"])

    run(scenario)
    assert all(kind <= {bytes, bytearray} for kind in kinds[3:])
    assert not any(kind <= {bytes, bytearray} for kind in kinds[1:3]), "without TLS they are views of the file"
