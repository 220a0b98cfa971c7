"""Where the clients of a listener find the brokers."""

from collections.abc import Sequence
from typing import NamedTuple

from korvet_fast.core.cluster.broker_registration import BrokerRegistration
from korvet_fast.endpoint import Address, Endpoint


class Node(NamedTuple):
    """The address at which clients are told to find a broker."""

    id: int
    address: Address
    rack: str | None


def find_nodes(members: Sequence[BrokerRegistration], own: Sequence[Endpoint], listener: int) -> list[Node]:
    """The nodes for a client of `own[listener]`, a listener of this broker: the members at a listener of its scheme.

    Of several with this scheme, the first of ours belongs to the first of theirs, and so on. So a client that speaks
    TLS is never sent to a port without it. A command registers no addresses: nobody is found by it.
    """
    if listener >= len(own):
        return []
    scheme = own[listener].scheme
    before = sum(endpoint.scheme == scheme for endpoint in own[:listener])
    nodes = []
    for member in members:
        alike = [endpoint for endpoint in member.addresses if endpoint.scheme == scheme]
        if before < len(alike):
            nodes.append(Node(member.id, alike[before].address, member.rack))
    return nodes
