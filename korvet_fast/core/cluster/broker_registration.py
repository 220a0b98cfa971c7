"""A broker's record, as it stands in the registry for the others to read."""

import json
from typing import Any, Final, NamedTuple

from korvet_fast.endpoint import KAFKA, Endpoint

PREFIX: Final = "brokers/"  # registry key: this and the broker's id

STARTING: Final = "starting"  # has its id, leads nothing yet
SERVING: Final = "serving"
LEAVING: Final = "leaving"  # the others are to take over its partitions


class BrokerRegistration(NamedTuple):
    """A broker. `addresses`: what clients are told, in the order of the listeners."""

    id: int
    incarnation: str  # identifies this start: another one under the same id is another process
    machine: str
    addresses: tuple[Endpoint, ...]
    state: str = STARTING
    heartbeat: int = 0  # grows as long as the broker lives
    rack: str | None = None

    @property
    def key(self) -> str:
        return f"{PREFIX}{self.id}"

    def write(self) -> bytes:
        """The record's bytes."""
        values = self._asdict() | {"addresses": [list(endpoint.address) for endpoint in self.addresses]}
        values["beat"] = values.pop("heartbeat")
        if self.rack is None:
            del values["rack"]  # brokers of an earlier version do not know it
        if any(endpoint.scheme != KAFKA for endpoint in self.addresses):  # nor this
            values["schemes"] = [endpoint.scheme for endpoint in self.addresses]
        return json.dumps(values).encode()

    def precedes(self, other: "BrokerRegistration") -> bool:
        """Whether `other`, which listens already, has taken this one's place on its machine: it is dead then."""
        others = {endpoint.address for endpoint in other.addresses}
        return self.machine == other.machine and any(endpoint.address in others for endpoint in self.addresses)


def read_registration(document: bytes) -> BrokerRegistration:
    """Read a registration that `BrokerRegistration.write` wrote."""
    values: dict[str, Any] = json.loads(document)
    values["heartbeat"] = values.pop("beat")
    addresses = values.pop("addresses")
    schemes = values.pop("schemes", [KAFKA] * len(addresses))
    endpoints = tuple(Endpoint(scheme, *address) for scheme, address in zip(schemes, addresses, strict=True))
    return BrokerRegistration(addresses=endpoints, **values)
