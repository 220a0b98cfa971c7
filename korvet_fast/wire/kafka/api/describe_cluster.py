"""DescribeCluster (key 60), versions 0-1: the brokers that are there.

0 brokers, controller and operations; 1 whether brokers or controllers are asked for: controllers have no listener here.
"""

from typing import Final

from korvet_fast.errors import KorvetError
from korvet_fast.wire.kafka.api import operations
from korvet_fast.wire.kafka.faults import translate
from korvet_fast.wire.kafka.session import Session, Values

_BROKERS: Final = 1


async def describe_cluster(session: Session, request: Values, version: int) -> Values:
    broker, cluster = session.broker, session.broker.cluster
    answer: Values = {
        "cluster_id": broker.cluster_id,
        "controller_id": cluster.controller,
        "brokers": [
            {"broker_id": place.id, "host": place.address.host, "port": place.address.port}
            for place in cluster.places(session.service.listener)
        ],
    }
    if request["endpoint_type"] != _BROKERS:
        error = KorvetError("INVALID_REQUEST", "only brokers can be described (endpoint type 1)")
        answer["error_code"], answer["error_message"] = translate(error)
        answer["brokers"] = []
    if request["include_cluster_authorized_operations"]:
        answer["cluster_authorized_operations"] = operations.CLUSTER
    return answer
