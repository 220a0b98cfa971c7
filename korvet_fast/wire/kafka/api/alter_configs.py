"""AlterConfigs (key 33), versions 0-2, and IncrementalAlterConfigs (key 44), versions 0-1: change a topic's settings.

33: the settings given replace all the topic had of its own. 0; 1 nothing new; 2 flexible.
44: each is set, deleted, or (lists) appended to or subtracted from (KIP-339). 0; 1 flexible.
Missing on purpose: the broker's own settings. They are read at the start, so altering them is refused; to delete one
succeeds, as none was set while the broker ran (Kafka's tools delete throttles whether they are set or not).
A resource named more than once is refused with INVALID_REQUEST, as Kafka does.
"""

from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Final, TypeAlias

from korvet_fast.config_def import TOPIC_SETTINGS, Kind
from korvet_fast.core.topics.topic import Topic
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.api.broker_loggers import BROKER_LOGGER, alter_loggers
from korvet_fast.wire.kafka.api.config_entries import BROKER, GROUP, TOPIC, check_broker
from korvet_fast.wire.kafka.api.repeated import find_twice, refuse_repeated
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.rights import ALTER_CLUSTER_CONFIGS, ALTER_GROUP_CONFIGS, ALTER_TOPIC_CONFIGS, require
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.configs import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from korvet_fast.wire.kafka.shapes.message import Message

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_OPERATIONS: Final = range(4)
_Merge: TypeAlias = "Callable[[Topic, list[Values]], Mapping[str, str | None]]"


async def alter_configs(session: Session, request: Values, version: int) -> Values:
    return await _alter_all(session, request, _replace)


async def incremental_alter_configs(session: Session, request: Values, version: int) -> Values:
    return await _alter_all(session, request, _change)


async def _alter_all(session: Session, request: Values, merge: _Merge) -> Values:
    twice = find_twice((one["resource_type"], one["resource_name"]) for one in request["resources"])
    pace = session.pace()
    rows = []
    for one in request["resources"]:
        rows.append(await _alter(session, one, twice, merge, validate_only=request["validate_only"]))
        if pace.due():
            await pace.turn()
    return {"responses": rows}


async def _alter(
    session: Session, resource: Values, twice: Set[object], merge: _Merge, *, validate_only: bool
) -> Values:
    kind, name = resource["resource_type"], resource["resource_name"]
    row: Values = {"resource_type": kind, "resource_name": name}
    try:
        if (kind, name) in twice:
            raise refuse_repeated("resource")
        api = INCREMENTAL_ALTER_CONFIGS if merge is _change else ALTER_CONFIGS
        _check_right(session, api, kind, name)
        configs = resource["configs"]
        if len({config["name"] for config in configs}) < len(configs):
            raise KorvetError(Errors.INVALID_REQUEST, "the request names a setting more than once")
        if kind == BROKER_LOGGER and merge is _change:
            check_broker(session, name)
            alter_loggers(configs, validate_only=validate_only)
            return row
        if kind == BROKER and merge is _change and _only_deletes(configs):
            check_broker(session, name)
            return row
        topic = _find(session, kind, name)
        changed = partial(merge, topic, configs)
        await session.broker.topics.alter(topic, changed, session.changer, validate_only=validate_only)
    except KorvetError as error:
        row["error_code"], row["error_message"] = translate(error)
    return row


def _check_right(session: Session, api: Message, kind: int, name: str) -> None:
    """Raises `KorvetError` with the error that belongs to the type of resource."""
    if kind == TOPIC:
        require(session, api, ALTER_TOPIC_CONFIGS, name)
    elif kind == GROUP:
        require(session, api, ALTER_GROUP_CONFIGS, name)
    else:
        require(session, api, ALTER_CLUSTER_CONFIGS)


def _find(session: Session, kind: int, name: str) -> Topic:
    if kind == BROKER:
        check_broker(session, name)
        raise KorvetError(
            Errors.INVALID_REQUEST, "the broker reads its settings at the start: give them there and restart"
        )
    if kind != TOPIC:
        raise KorvetError(Errors.INVALID_REQUEST, f"resources of type {kind} have no settings that can be altered")
    topic = session.broker.topics.get(name)
    if topic is None:
        raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return topic


def _only_deletes(configs: list[Values]) -> bool:
    return all(config["config_operation"] == _DELETE for config in configs)


def _replace(topic: Topic, configs: list[Values]) -> dict[str, str | None]:
    return {config["name"]: config["value"] for config in configs}


def _change(topic: Topic, configs: list[Values]) -> dict[str, str | None]:
    overrides: dict[str, str | None] = dict(topic.config.overrides)
    for config in configs:
        name, operation, value = config["name"], config["config_operation"], config["value"]
        if operation not in _OPERATIONS:
            raise KorvetError(Errors.INVALID_REQUEST, f"{name}: there is no operation {operation}")
        if operation == _DELETE:
            if name in topic.config.fixed:
                raise KorvetError(Errors.INVALID_CONFIG, f"{name} is fixed when a topic is created")
            overrides.pop(name, None)
        elif value is None:
            raise KorvetError(Errors.INVALID_REQUEST, f"{name}: a value is missing")
        elif operation == _SET:
            overrides[name] = value
        else:
            overrides[name] = _edit(topic, name, value, append=operation == _APPEND)
    return overrides


def _edit(topic: Topic, name: str, value: str, *, append: bool) -> str:
    """The list that `name` holds, with items added or taken away."""
    setting = TOPIC_SETTINGS.get(name)
    if setting is None or setting.kind is not Kind.LIST:
        raise KorvetError(Errors.INVALID_CONFIG, f"{name} is no list, so nothing can be appended or subtracted")
    items = [item for item in topic.config.text(name).split(",") if item]
    given = [item.strip() for item in value.split(",")]
    if append:
        return ",".join(items + [item for item in given if item not in items])
    return ",".join(item for item in items if item not in given)
