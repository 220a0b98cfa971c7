"""Settings of topics and brokers, and the levels of a broker's loggers, as clients see and change them."""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from korvet_fast.client.cluster import Cluster
from korvet_fast.client.connection import Connection
from korvet_fast.client.protocol.errors import check_error_code
from korvet_fast.wire.kafka.shapes.configs import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS

_SET, _DELETE = 0, 1  # operations of IncrementalAlterConfigs
# Kafka's numbers (DescribeConfigsResponse.java), and their words here.
SOURCES: Final[Mapping[int, str]] = {
    1: "topic",
    2: "running",  # set while the broker ran
    3: "cluster",  # set while brokers ran, for all of them
    4: "start",  # flags, environment and file
    5: "default",
    6: "running",
}
_KINDS: Final[Mapping[int, str]] = {1: "boolean", 2: "string", 3: "int", 4: "short", 5: "long", 6: "double", 7: "list"}


class ResourceType(IntEnum):
    """The kinds of resources that have settings (Kafka's ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8


class Resource(NamedTuple):
    """A topic by its name, or a broker by its id; "" is any broker."""

    kind: ResourceType
    name: str

    def __str__(self) -> str:
        if self.kind is ResourceType.TOPIC:
            return f"topic {self.name!r}"
        broker = f"broker {self.name}" if self.name else "the broker"
        return f"{broker}'s loggers" if self.kind is ResourceType.BROKER_LOGGER else broker


class Config(NamedTuple):
    """A setting in force. `value` None: it is secret. `source`: where the value comes from; `doc` "" if not told."""

    name: str
    value: str | None
    source: str
    default: str | None
    kind: str
    read_only: bool
    doc: str


async def describe_configs(cluster: Cluster, resource: Resource, names: Sequence[str] | None = None) -> list[Config]:
    """The settings of a resource, by name. `names` None: all. Raises `ClientError`."""
    asked = {"resource_type": resource.kind, "resource_name": resource.name, "configuration_keys": names}
    request = {"resources": [asked], "include_synonyms": True, "include_documentation": True}
    answer = await (await _connect(cluster, resource)).request(DESCRIBE_CONFIGS, request)
    (found,) = answer["results"]
    check_error_code(f"the settings of {resource}", found["error_code"], found["error_message"])
    return sorted(map(_read, found["configs"]))


async def alter_configs(
    cluster: Cluster, resource: Resource, changed: Iterable[tuple[str, str]], unset: Iterable[str] = ()
) -> None:
    """Set some settings, and give others back to their defaults. Raises `ClientError`."""
    changes: list[dict[str, Any]] = [
        {"name": name, "value": value, "config_operation": _SET} for name, value in changed
    ]
    changes += [{"name": name, "value": None, "config_operation": _DELETE} for name in unset]
    asked = {"resource_type": resource.kind, "resource_name": resource.name, "configs": changes}
    answer = await (await _connect(cluster, resource)).request(INCREMENTAL_ALTER_CONFIGS, {"resources": [asked]})
    (altered,) = answer["responses"]
    was = "were" if resource.kind is ResourceType.BROKER_LOGGER else "was"
    check_error_code(f"{resource} {was} not altered", altered["error_code"], altered["error_message"])


async def _connect(cluster: Cluster, resource: Resource) -> Connection:
    """The broker to ask: a broker itself for its own settings."""
    if resource.kind is ResourceType.TOPIC or not resource.name:
        return await cluster.controller()
    return await cluster.broker(int(resource.name))


def _read(row: Mapping[str, Any]) -> Config:
    default = next((each["value"] for each in row["synonyms"] if SOURCES.get(each["source"]) == "default"), None)
    source = SOURCES.get(row["config_source"], "unknown")
    kind = _KINDS.get(row["config_type"], "unknown")
    return Config(row["name"], row["value"], source, default, kind, row["read_only"], row["documentation"] or "")
