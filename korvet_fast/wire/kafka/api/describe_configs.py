"""DescribeConfigs (key 32), versions 1-4: the settings of topics, of groups, and of the broker.

1 sources and synonyms; 2 nothing new; 3 kinds and documentation; 4 flexible.
Missing on purpose: settings of other resources than topics, groups, brokers and loggers (refused: INVALID_REQUEST).
A resource named more than once is answered once, by its first row: Kafka repeats the same answer, clients keep one.
"""

from collections.abc import Iterable
from typing import Final

from korvet_fast.config import Described
from korvet_fast.core.topics.topic import check_name
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.kafka.api.broker_loggers import BROKER_LOGGER, describe_loggers
from korvet_fast.wire.kafka.api.config_entries import BROKER, GROUP, KINDS, SOURCES, TOPIC, check_broker, config_entry
from korvet_fast.wire.kafka.api.features import INTER_BROKER_PROTOCOL_VERSION
from korvet_fast.wire.kafka.array_encoder import ArrayEncoder
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.rights import (
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP_CONFIGS,
    DESCRIBE_TOPIC_CONFIGS,
    require,
)
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes.configs import DESCRIBE_CONFIGS

_OF_GROUPS: Final = ("group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms")
_RESULTS: Final = ArrayEncoder(DESCRIBE_CONFIGS.response_shape, "results")


async def describe_configs(session: Session, request: Values, version: int) -> Reply:
    resources: dict[tuple[int, str], Values] = {}
    for resource in request["resources"]:
        resources.setdefault((resource["resource_type"], resource["resource_name"]), resource)
    values = {"correlation_id": request["correlation_id"]}
    rows = (_describe(session, resource, request) for resource in resources.values())
    return await _RESULTS.reply(values, len(resources), rows, version, session.pace())


def _describe(session: Session, resource: Values, request: Values) -> Values:
    row: Values = {"resource_type": resource["resource_type"], "resource_name": resource["resource_name"]}
    wanted = None if resource["configuration_keys"] is None else set(resource["configuration_keys"])
    try:
        _check_right(session, resource)
        if resource["resource_type"] == BROKER_LOGGER:
            check_broker(session, resource["resource_name"])
            row["configs"] = [one for one in describe_loggers() if wanted is None or one["name"] in wanted]
            return row
        described = _find(session, resource)
    except KorvetError as error:
        row["error_code"], row["error_message"] = translate(error)
    else:
        row["configs"] = [_show(one, resource, request) for one in described if wanted is None or one.name in wanted]
    return row


def _check_right(session: Session, resource: Values) -> None:
    """Raises `KorvetError` with the error that belongs to the type of resource."""
    kind, name = resource["resource_type"], resource["resource_name"]
    if kind == TOPIC:
        require(session, DESCRIBE_CONFIGS, DESCRIBE_TOPIC_CONFIGS, name)
    elif kind == GROUP:
        require(session, DESCRIBE_CONFIGS, DESCRIBE_GROUP_CONFIGS, name)
    else:
        require(session, DESCRIBE_CONFIGS, DESCRIBE_CLUSTER_CONFIGS)


def _find(session: Session, resource: Values) -> Iterable[Described]:
    kind, name = resource["resource_type"], resource["resource_name"]
    if kind == BROKER:
        check_broker(session, name)
        return [*session.broker.settings.describe(), INTER_BROKER_PROTOCOL_VERSION]
    if kind == GROUP:
        return _describe_group(session)
    if kind != TOPIC:
        raise KorvetError(Errors.INVALID_REQUEST, f"resources of type {kind} have no settings here")
    topic = session.broker.topics.get(name)
    if topic is None:
        check_name(name)
        raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return topic.config.describe()


def _describe_group(session: Session) -> Iterable[Described]:
    """The settings that a group has (GroupConfig.java): the broker's, which hold for every group."""
    for one in session.broker.settings.describe():
        if one.name in _OF_GROUPS:
            yield one._replace(name=one.name.removeprefix("group."))


def _show(described: Described, resource: Values, request: Values) -> Values:
    shown = config_entry(described)
    shown["read_only"] = described.setting.fixed or resource["resource_type"] in (BROKER, GROUP)
    shown["config_type"] = KINDS[described.setting.kind]
    if request["include_synonyms"]:
        shown["synonyms"] = [
            {"name": name, "value": value, "source": SOURCES[source]} for name, value, source in described.synonyms
        ]
    if request["include_documentation"]:
        shown["documentation"] = described.setting.doc
    return shown
