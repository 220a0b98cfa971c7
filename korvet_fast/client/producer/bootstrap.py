"""Where a producer begins: `HOST:PORT`, or with a scheme as the broker's ready line writes an address."""

from typing import NamedTuple

from korvet_fast.client.producer.dialects import DIALECTS, KAFKA, Dialect
from korvet_fast.endpoint import Address, read_bootstrap


class Bootstrap(NamedTuple):
    """`broker`: the only one there is, where the dialect has one."""

    dialect: Dialect
    addresses: tuple[Address, ...]

    @property
    def broker(self) -> Address | None:
        return self.addresses[0] if self.dialect.broker_chooses else None


def read_brokers(text: str) -> Bootstrap:
    """Read one address, or several with commas between them. Raises `ValueError` with a sentence."""
    parts = [part.strip() for part in text.split(",")]
    schemes = {part.partition("://")[0] if "://" in part else KAFKA.scheme for part in parts}
    unknown = sorted(schemes - DIALECTS.keys())
    if unknown:
        names = ", ".join(f"{name}://" for name in DIALECTS)
        raise ValueError(f"the producer does not speak {unknown[0]}://; it speaks {names}")
    if len(schemes) > 1:
        raise ValueError(f"{text!r} names several protocols; give the addresses of one")
    dialect = DIALECTS[schemes.pop()]
    addresses = read_bootstrap(",".join(part.rpartition("://")[2] for part in parts))
    if dialect.broker_chooses and len(addresses) > 1:
        raise ValueError(f"{text!r}: {dialect.title} does not tell which broker leads a partition; give one address")
    return Bootstrap(dialect, addresses)
