"""Whether clients should be sent to this broker: for probes, and for load balancers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from korvet_fast.core.broker import Broker
from korvet_fast.core.broker_state import BrokerState

_STATES: Final[Mapping[BrokerState, str]] = MappingProxyType(
    {
        BrokerState.STARTING: "the broker is starting",
        BrokerState.RUNNING: "",
        BrokerState.PENDING_CONTROLLED_SHUTDOWN: "the broker is stopping",
        BrokerState.SHUTTING_DOWN: "the broker is stopping",
    }
)


def find_obstacle(broker: Broker) -> str:
    """Why no client should be sent to this broker at this moment, in a sentence; "" if clients may come."""
    if obstacle := _STATES[broker.state]:
        return obstacle
    if broker.network_use is None:  # it is open, and no client can connect yet
        return _STATES[BrokerState.STARTING]
    if not broker.cluster.holds_lease():
        cause = broker.replication.registry.failure if broker.replication is not None else ""
        return "the store has not answered for nearly broker.session.timeout.ms" + (f": {cause}" if cause else "")
    if broker.authorizer is not None and not broker.authorizer.is_ready:
        return "the ACLs cannot be read: only super users may do anything"
    return broker.storage_error() or ""
