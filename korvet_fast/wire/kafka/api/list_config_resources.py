"""ListConfigResources (key 74), versions 0-1: the names of resources that have settings.

0 client metrics only, which are not collected here; 1 the kinds that are asked for, or all. Groups are listed where
they have settings of their own, and none has: those of `group.consumer.*` hold for all.
"""

from typing import Final

from korvet_fast.errors import Errors
from korvet_fast.wire.kafka.api.broker_loggers import BROKER_LOGGER
from korvet_fast.wire.kafka.api.config_entries import BROKER, CLIENT_METRICS, GROUP, TOPIC
from korvet_fast.wire.kafka.errors import CODES
from korvet_fast.wire.kafka.session import Session, Values

_KINDS: Final = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


async def list_config_resources(session: Session, request: Values, version: int) -> Values:
    asked = set(request["resource_types"] or _KINDS) if version else {CLIENT_METRICS}
    if not asked <= set(_KINDS):
        return {"error_code": CODES[Errors.UNSUPPORTED_VERSION]}
    rows: list[Values] = []
    if TOPIC in asked:
        rows += [{"resource_type": TOPIC, "resource_name": topic.name} for topic in session.broker.topics]
    brokers = [str(node.id) for node in session.broker.cluster.nodes(session.service.listener)]
    for kind in sorted(asked & {BROKER, BROKER_LOGGER}):
        rows += [{"resource_type": kind, "resource_name": name} for name in brokers]
    return {"config_resources": rows}
