"""Kafka's ConfigEntry: a setting as the admin APIs show it, with numbers for its kind, its source and its resource.

Source: DescribeConfigsResponse.java (ConfigType, ConfigSource) and ConfigResource.java.
"""

from typing import Final

from korvet_fast.config import Described, Source
from korvet_fast.config_def import Kind
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.session import Session, Values

TOPIC: Final = 2
BROKER: Final = 4
CLIENT_METRICS: Final = 16
GROUP: Final = 32

KINDS: Final = {Kind.BOOLEAN: 1, Kind.STRING: 2, Kind.INT: 3, Kind.LONG: 5, Kind.DOUBLE: 6, Kind.LIST: 7}
# Flags, environment and file are all Kafka's "static broker config": read once at the start.
SOURCES: Final = {Source.TOPIC: 1, Source.FLAG: 4, Source.ENVIRONMENT: 4, Source.FILE: 4, Source.DEFAULT: 5}


def config_entry(described: Described) -> Values:
    """One setting in force: the fields that CreateTopics and DescribeConfigs have in common."""
    return {
        "name": described.name,
        "value": described.value,
        "config_source": SOURCES[described.source],
    }


def check_broker(session: Session, name: str) -> None:
    """Raises `KorvetError` INVALID_REQUEST unless `name` is this broker's number, or empty (all brokers)."""
    if name not in ("", str(session.broker.node_id)):
        raise KorvetError(
            Errors.INVALID_REQUEST, f"broker {name!r} is asked for, this is broker {session.broker.node_id}"
        )
