"""DescribeCluster (key 60), versions 0-2: the brokers that are there.

0 brokers, controller and operations; 1 whether brokers or controllers are asked for: controllers have no listener here;
2 whether fenced brokers are wanted too: here a broker that does not live is not listed.
"""

from typing import Final

from korvet_fast.core.acls.binding import ResourceType
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.api import acl_operations
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.rights import DESCRIBE_CLUSTER, has
from korvet_fast.wire.kafka.session import Session, Values
from korvet_fast.wire.kafka.shapes import cluster as shapes

_BROKERS: Final = 1


async def describe_cluster(session: Session, request: Values, version: int) -> Values:
    broker, cluster = session.broker, session.broker.cluster
    answer: Values = {
        "cluster_id": broker.cluster_id,
        "controller_id": cluster.controller,
        "brokers": [
            {"broker_id": node.id, "host": node.address.host, "port": node.address.port, "rack": node.rack}
            for node in cluster.nodes(session.service.listener)
        ],
    }
    if request["endpoint_type"] != _BROKERS:
        error = KorvetError(Errors.INVALID_REQUEST, "only brokers can be described (endpoint type 1)")
        answer["error_code"], answer["error_message"] = translate(error)
        answer["brokers"] = []
    if request["include_cluster_authorized_operations"]:
        allowed = has(session, shapes.DESCRIBE_CLUSTER, DESCRIBE_CLUSTER)
        found = acl_operations.find_operations(session, ResourceType.CLUSTER) if allowed else 0
        answer["cluster_authorized_operations"] = found
    return answer
