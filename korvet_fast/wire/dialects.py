"""The one table of dialects: a new one is a folder of its own, and a line here."""

from collections.abc import Mapping
from typing import Final, Protocol

from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.wire.dialect import Dialect, FirstBytes
from korvet_fast.wire.http.dialect import HttpDialect
from korvet_fast.wire.kafka.dialect import KafkaDialect, SaslKafkaDialect
from korvet_fast.wire.legacy.dialect import LegacyDialect
from korvet_fast.wire.protocols import FOREIGN, find_protocol
from korvet_fast.wire.replica.dialect import ReplicaDialect
from korvet_fast.wire.text.dialect import TextDialect


class DialectType(Protocol):
    """A dialect's class. `of_peers`: other brokers speak it, and they wait for each other when they open.

    `in_zookeeper`: its clients look for brokers in ZooKeeper. `first_bytes`: see `Dialect`.
    """

    @property
    def of_peers(self) -> bool: ...

    @property
    def in_zookeeper(self) -> bool: ...

    @property
    def first_bytes(self) -> FirstBytes | None: ...

    def __call__(self, broker: Broker, listener: int, workers: FairExecutor) -> Dialect:
        """`listener`: its number among all of the broker's, from 0; `workers`: they do work too long for the loop."""


SASL: Final = "kafka+sasl"  # the scheme whose clients log in
# By the scheme of a listener's endpoint.
DIALECTS: Final[Mapping[str, DialectType]] = {
    "kafka": KafkaDialect,
    SASL: SaslKafkaDialect,
    "text": TextDialect,
    "legacy": LegacyDialect,
    "replica": ReplicaDialect,
    "http": HttpDialect,
}
TLS: Final = "+tls"  # behind a scheme: the same dialect inside TLS
SCHEMES: Final = (*DIALECTS, *(scheme + TLS for scheme in DIALECTS))
OF_PEERS: Final = frozenset(scheme for scheme in SCHEMES if DIALECTS[scheme.removesuffix(TLS)].of_peers)
OF_OPERATORS: Final = frozenset({"http", "http" + TLS})  # served by a server of their own, from start to end
OF_CLIENTS: Final = frozenset(SCHEMES) - OF_PEERS - OF_OPERATORS
IN_ZOOKEEPER: Final = frozenset(scheme for scheme, dialect in DIALECTS.items() if dialect.in_zookeeper)
_KNOWN: Final = (*FOREIGN.values(), *(each.first_bytes for each in DIALECTS.values() if each.first_bytes is not None))


def detect_protocol(first: bytes, dialect: Dialect) -> str | None:
    """Say, for the log, which other protocol than `dialect` the first bytes of a connection look like, or None."""
    return find_protocol(first, (known for known in _KNOWN if known != dialect.first_bytes), dialect.listener_name)
