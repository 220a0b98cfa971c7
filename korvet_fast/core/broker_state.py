"""The states of a broker, from its start to its end."""

from enum import IntEnum


class BrokerState(IntEnum):
    """Kafka's states of a broker, with Kafka's numbers (BrokerState.java); those that are left out do not occur."""

    STARTING = 1
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6  # the other brokers take over
    SHUTTING_DOWN = 7
