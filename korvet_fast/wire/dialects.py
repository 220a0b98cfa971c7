"""The one table of dialects: a new one is a folder of its own, and a line here."""

from collections.abc import Callable, Mapping
from typing import Final

from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.wire.dialect import Dialect
from korvet_fast.wire.kafka.dialect import KafkaDialect
from korvet_fast.wire.legacy.dialect import LegacyDialect
from korvet_fast.wire.replica.dialect import ReplicaDialect
from korvet_fast.wire.text.dialect import TextDialect

PEERS: Final = "replica"  # the scheme that other brokers use: they wait for each other when they open

# By the scheme of a listener's endpoint. Each takes the broker, the number of the listener among all of the broker's,
# from 0, and the threads for work that is too long for the loop.
DIALECTS: Final[Mapping[str, Callable[[Broker, int, FairExecutor], Dialect]]] = {
    "kafka": KafkaDialect,
    "text": TextDialect,
    "legacy": LegacyDialect,
    "replica": ReplicaDialect,
}
