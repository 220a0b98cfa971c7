"""The connection for Metadata: requests that fail together close it once, and nobody else's next one."""

import asyncio

import pytest

from korvet_fast.client.producer.config import read_config
from korvet_fast.client.producer.control_connection import ControlConnection
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.endpoint import Address
from korvet_fast.testing import running_broker
from korvet_fast.wire.kafka.shapes.cluster import METADATA

ALL = {"topics": None}


async def test_a_request_that_failed_closes_only_its_own_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_broker() as address:
        host, _, port = address.rpartition(":")
        control = ControlConnection([Address(host, int(port))], lambda: [], read_config({}))
        await control.request(METADATA, ALL)
        old = control._connection
        assert old is not None
        failed = asyncio.Event()

        async def fail(*_: object) -> None:
            await failed.wait()
            raise ClientError("the broker is away")

        monkeypatch.setattr(old, "request", fail)
        first, second = (asyncio.create_task(control.request(METADATA, ALL)) for _ in range(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await old.close()
        await control.request(METADATA, ALL)  # over a new connection
        new = control._connection
        failed.set()
        results = await asyncio.gather(first, second, return_exceptions=True)
        assert [type(each) for each in results] == [ClientError, ClientError]
        assert control._connection is new
        assert new is not None
        assert new.failure is None
        await control.request(METADATA, ALL)
        await control.close()
