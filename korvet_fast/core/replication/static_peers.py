"""replication.peers: the brokers there are, one entry each, the same text on every broker."""

from typing import NamedTuple

from korvet_fast.config import Settings, Source
from korvet_fast.core.replication.secret import Secret, read_secret
from korvet_fast.endpoint import Address, read_address
from korvet_fast.errors import SettingError

_PEERS = "replication.peers"
PROTOCOL = "security.inter.broker.protocol"
_SECRET = "replication.secret.file"  # noqa: S105  (a setting's name)


class StaticPeers(NamedTuple):
    """`own`: this broker's id; `addresses`: of all brokers' replica listeners, by id; `tls`: they are inside TLS."""

    own: int
    addresses: dict[int, Address]
    secret: Secret
    tls: bool = False


def read_static_peers(settings: Settings) -> StaticPeers | None:
    """The peers that the settings name; None if they name none. Raises `SettingError`."""
    text, tls = settings.text(_PEERS), settings.text(PROTOCOL) == "SSL"
    if not text:
        if tls:
            raise SettingError(f"{PROTOCOL}=SSL is for {_PEERS}, and none are set")
        return None
    addresses: dict[int, Address] = {}
    for part in text.split(","):
        identity, _, address = part.partition("@")
        try:
            place = read_address(address)
        except ValueError as error:
            raise SettingError(f"{_PEERS}: {error}") from None
        if int(identity) in addresses:
            raise SettingError(f"{_PEERS} names broker {int(identity)} twice")
        addresses[int(identity)] = place
    if settings.source("node.id") is Source.DEFAULT:
        raise SettingError(f"{_PEERS} is set, so say which of them this broker is: --set node.id=N")
    own = settings.number("node.id")
    if own not in addresses:
        raise SettingError(f"node.id={own} is not among {_PEERS}: {text}")
    if not settings.text(_SECRET):
        raise SettingError(f"{_PEERS} is set, so {_SECRET} has to name the file of the secret that they share")
    return StaticPeers(own, addresses, read_secret(settings.text(_SECRET)), tls)
