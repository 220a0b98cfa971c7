"""AlterConfigs (key 33), versions 0-2, and IncrementalAlterConfigs (key 44), versions 0-1: change a topic's settings.

33: the settings given replace all the topic had of its own. 0; 1 nothing new; 2 flexible.
44: each is set, deleted, or (lists) appended to or subtracted from (KIP-339). 0; 1 flexible.
Missing on purpose: the broker's own settings. They are read at the start, so altering them is refused.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from korvet_fast.config import TOPIC_SETTINGS, Kind
from korvet_fast.core.topic import Topic
from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.api.entries import BROKER, TOPIC, check_broker
from korvet_fast.wire.kafka.faults import translate
from korvet_fast.wire.kafka.session import Session, Values

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_OPERATIONS: Final = range(4)


async def alter_configs(session: Session, request: Values, version: int) -> Values:
    return {"responses": [await _alter(session, one, request, _replace) for one in request["resources"]]}


async def incremental_alter_configs(session: Session, request: Values, version: int) -> Values:
    return {"responses": [await _alter(session, one, request, _change) for one in request["resources"]]}


async def _alter(
    session: Session,
    resource: Values,
    request: Values,
    merge: Callable[[Topic, list[Values]], Mapping[str, str | None]],
) -> Values:
    kind, name = resource["resource_type"], resource["resource_name"]
    row: Values = {"resource_type": kind, "resource_name": name}
    try:
        topic = _find(session, kind, name)
        configs = resource["configs"]
        if len({config["name"] for config in configs}) < len(configs):
            raise KorvetError("INVALID_REQUEST", "the request names a setting more than once")
        changed = partial(merge, topic, configs)
        await session.broker.topics.alter(topic, changed, validate_only=request["validate_only"])
    except KorvetError as error:
        row["error_code"], row["error_message"] = translate(error)
    return row


def _find(session: Session, kind: int, name: str) -> Topic:
    if kind == BROKER:
        check_broker(session, name)
        raise KorvetError("INVALID_REQUEST", "the broker reads its settings at the start: give them there and restart")
    if kind != TOPIC:
        raise KorvetError("INVALID_REQUEST", f"resources of type {kind} have no settings here")
    topic = session.broker.topics.get(name)
    if topic is None:
        raise KorvetError("UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {name!r}")
    return topic


def _replace(topic: Topic, configs: list[Values]) -> dict[str, str | None]:
    return {config["name"]: config["value"] for config in configs}


def _change(topic: Topic, configs: list[Values]) -> dict[str, str | None]:
    overrides: dict[str, str | None] = dict(topic.config.overrides)
    for config in configs:
        name, operation, value = config["name"], config["config_operation"], config["value"]
        if operation not in _OPERATIONS:
            raise KorvetError("INVALID_REQUEST", f"{name}: there is no operation {operation}")
        if operation == _DELETE:
            if name in topic.config.fixed:
                raise KorvetError("INVALID_CONFIG", f"{name} is fixed when a topic is created")
            overrides.pop(name, None)
        elif value is None:
            raise KorvetError("INVALID_REQUEST", f"{name}: a value is missing")
        elif operation == _SET:
            overrides[name] = value
        else:
            overrides[name] = _edit(topic, name, value, append=operation == _APPEND)
    return overrides


def _edit(topic: Topic, name: str, value: str, *, append: bool) -> str:
    """The list that `name` holds, with items added or taken away."""
    setting = TOPIC_SETTINGS.get(name)
    if setting is None or setting.kind is not Kind.LIST:
        raise KorvetError("INVALID_CONFIG", f"{name} is no list, so nothing can be appended or subtracted")
    items = [item for item in topic.config.text(name).split(",") if item]
    given = [item.strip() for item in value.split(",")]
    if append:
        return ",".join(items + [item for item in given if item not in items])
    return ",".join(item for item in items if item not in given)
