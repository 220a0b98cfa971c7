"""A broker's record, as it stands in the registry for the others to read."""

import json
from typing import Any, Final, NamedTuple

from korvet_fast.endpoint import Address

PREFIX: Final = "brokers/"  # registry key: this and the broker's id

STARTING: Final = "starting"  # has its id, leads nothing yet
SERVING: Final = "serving"
LEAVING: Final = "leaving"  # the others are to take over its partitions


class BrokerRegistration(NamedTuple):
    """A broker. `addresses`: what clients are told, in the order of the listeners, the same on every broker."""

    id: int
    incarnation: str  # identifies this start: another one under the same id is another process
    machine: str
    addresses: tuple[Address, ...]
    state: str = STARTING
    heartbeat: int = 0  # grows as long as the broker lives
    rack: str | None = None

    @property
    def key(self) -> str:
        return f"{PREFIX}{self.id}"

    def write(self) -> bytes:
        """The record's bytes."""
        values = self._asdict() | {"addresses": [list(address) for address in self.addresses]}
        values["beat"] = values.pop("heartbeat")
        if self.rack is None:
            del values["rack"]  # brokers of an earlier version do not know it
        return json.dumps(values).encode()

    def precedes(self, other: "BrokerRegistration") -> bool:
        """Whether `other`, which listens already, has taken this one's place on its machine: it is dead then."""
        return self.machine == other.machine and not set(self.addresses).isdisjoint(other.addresses)


def read_registration(document: bytes) -> BrokerRegistration:
    """Read a registration that `BrokerRegistration.write` wrote."""
    values: dict[str, Any] = json.loads(document)
    values["heartbeat"] = values.pop("beat")
    return BrokerRegistration(**values | {"addresses": tuple(Address(*address) for address in values["addresses"])})
