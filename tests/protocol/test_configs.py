"""Settings of topics and of the broker, over a socket."""

from pathlib import Path
from typing import Any

import pytest

from kafka_server import (
    ALTER_CONFIGS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    error_of,
    kafka_server,
    make_batch,
    run,
)
from korvet_fast.wire.kafka.errors import CODES

TOPIC, BROKER = 2, 4


@pytest.mark.parametrize("version", range(1, 5))
def test_settings_are_described(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "log.retention.ms=5000") as server:
            client = await server.connect()
            await client.create("t", max_message_bytes="2000")

            async def describe(kind: int, name: str, keys: Any = None) -> dict[str, Any]:
                resources = [{"resource_type": kind, "resource_name": name, "configuration_keys": keys}]
                asked = {"resources": resources, "include_synonyms": True, "include_documentation": True}
                row: dict[str, Any] = (await client.ask(DESCRIBE_CONFIGS, version, **asked))["results"][0]
                return row

            row = await describe(TOPIC, "t")
            shown = {entry["name"]: entry for entry in row["configs"]}
            assert (shown["max.message.bytes"]["value"], shown["max.message.bytes"]["config_source"]) == ("2000", 1)
            assert (shown["retention.ms"]["value"], shown["retention.ms"]["config_source"]) == ("5000", 4)
            assert (shown["cleanup.policy"]["value"], shown["cleanup.policy"]["config_source"]) == ("delete", 5)
            synonyms = shown["max.message.bytes"]["synonyms"]
            assert [(one["name"], one["source"]) for one in synonyms] == [
                ("max.message.bytes", 1),
                ("message.max.bytes", 5),
            ]
            if version >= 3:
                assert shown["retention.ms"]["config_type"] == 5
                assert shown["retention.ms"]["documentation"]
            assert not any(entry["read_only"] for entry in row["configs"])
            row = await describe(BROKER, "1", ["num.partitions"])
            assert [(entry["name"], entry["value"], entry["read_only"]) for entry in row["configs"]] == [
                ("num.partitions", "1", True)
            ]
            assert error_of(await describe(BROKER, "7")) == "INVALID_REQUEST"
            assert error_of(await describe(TOPIC, "unknown")) == "UNKNOWN_TOPIC_OR_PARTITION"
            assert error_of(await describe(TOPIC, "not/legal")) == "INVALID_TOPIC_EXCEPTION"
            assert error_of(await describe(16, "t")) == "INVALID_REQUEST"

    run(scenario)


def _overrides(server: Any) -> dict[str, str]:
    return dict(server.broker.topics.get("t").config.overrides)


@pytest.mark.parametrize("version", range(3))
def test_settings_are_replaced(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", retention_ms="1")

            async def alter(kind: int, name: str, validate_only: bool = False, **configs: str) -> str:
                rows = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
                resources = [{"resource_type": kind, "resource_name": name, "configs": rows}]
                asked = {"resources": resources, "validate_only": validate_only}
                return error_of((await client.ask(ALTER_CONFIGS, version, **asked))["responses"][0])

            assert await alter(TOPIC, "t", True, max_message_bytes="9") == ""
            assert _overrides(server) == {"retention.ms": "1"}
            assert await alter(TOPIC, "t", max_message_bytes="9") == ""
            assert _overrides(server) == {"max.message.bytes": "9"}
            assert (await client.produce("t", make_batch(b"x")))["error_code"] == CODES["MESSAGE_TOO_LARGE"]
            assert await alter(TOPIC, "t", nonsense="9") == "INVALID_CONFIG"
            assert await alter(TOPIC, "unknown") == "UNKNOWN_TOPIC_OR_PARTITION"
            assert await alter(BROKER, "1", num_partitions="2") == "INVALID_REQUEST"
            assert await alter(32, "t") == "INVALID_REQUEST"

    run(scenario)


@pytest.mark.parametrize("version", range(2))
def test_settings_are_changed_one_by_one(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", retention_ms="1")

            async def alter(*configs: tuple[str, int, str | None], validate_only: bool = False) -> str:
                rows = [{"name": name, "config_operation": how, "value": value} for name, how, value in configs]
                resources = [{"resource_type": TOPIC, "resource_name": "t", "configs": rows}]
                asked = {"resources": resources, "validate_only": validate_only}
                return error_of((await client.ask(INCREMENTAL_ALTER_CONFIGS, version, **asked))["responses"][0])

            assert await alter(("max.message.bytes", 0, "9"), validate_only=True) == ""
            assert _overrides(server) == {"retention.ms": "1"}
            assert await alter(("max.message.bytes", 0, "9"), ("retention.ms", 1, None)) == ""
            assert _overrides(server) == {"max.message.bytes": "9"}
            assert await alter(("cleanup.policy", 2, "compact")) == ""
            assert _overrides(server) == {"max.message.bytes": "9", "cleanup.policy": "delete,compact"}
            assert await alter(("cleanup.policy", 3, "compact")) == ""
            assert _overrides(server) == {"max.message.bytes": "9", "cleanup.policy": "delete"}
            for change, expected in (
                (("cleanup.policy", 2, "compress"), "INVALID_CONFIG"),
                (("cleanup.policy", 3, "delete"), "INVALID_CONFIG"),
                (("retention.ms", 2, "5"), "INVALID_CONFIG"),
                (("retention.ms", 0, None), "INVALID_REQUEST"),
                (("retention.ms", 9, "5"), "INVALID_REQUEST"),
                (("nonsense", 0, "5"), "INVALID_CONFIG"),
                (("storage.layout", 0, "entries"), "INVALID_CONFIG"),
                (("storage.layout", 1, None), "INVALID_CONFIG"),
            ):
                assert await alter(change) == expected, change
            assert await alter(("storage.layout", 0, "batches")) == ""
            assert await alter(("retention.ms", 0, "1"), ("retention.ms", 0, "2")) == "INVALID_REQUEST"
            assert _overrides(server) == {"max.message.bytes": "9", "cleanup.policy": "delete"}

    run(scenario)
