"""Replication as `serve` sets it up from replication.peers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from korvet_fast.cli.broker_options import BrokerOptions
from korvet_fast.cli.store import make_files
from korvet_fast.config import Settings
from korvet_fast.core.replication.replication import Replication
from korvet_fast.core.replication.static_peers import PROTOCOL, StaticPeers, read_static_peers
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError
from korvet_fast.wire.dialects import OF_PEERS, TLS

if TYPE_CHECKING:
    from korvet_fast.client.security import Security


def make_replication(options: BrokerOptions) -> Replication | None:
    """Make this broker's part of replication; None without replication.peers. Raises `SettingError`."""
    static = read_static_peers(options.settings)
    check_listeners(options.listeners, static)
    if static is None:
        return None
    if not isinstance(options.place, Path):
        raise SettingError(
            "replication.peers are for brokers over files; a Redis makes copies of its own: leave them out"
        )
    from korvet_fast.client.replica_peers import ReplicaPeers  # the client is a tenth of a second to import

    files = make_files(options.place, options.settings)
    return Replication(static, files, ReplicaPeers(static, secure_peers(static, options.settings)), options.settings)


def secure_peers(static: StaticPeers, settings: Settings) -> "Security":
    """How brokers connect to each other."""
    from korvet_fast.client.security import PLAINTEXT, Security

    authorities, certificate = map(settings.text, ("ssl.truststore.location", "ssl.keystore.location"))
    return Security(tls=True, authorities=authorities, certificate=certificate) if static.tls else PLAINTEXT


def check_listeners(listeners: Sequence[Endpoint], static: StaticPeers | None) -> None:
    """Raises `SettingError` where the listeners and replication.peers do not belong together."""
    peers = [endpoint for endpoint in listeners if endpoint.scheme in OF_PEERS]
    if static is None:
        if peers:
            raise SettingError(f"--listen {peers[0]} is for replication.peers, and none are set")
        return
    scheme = f"replica{TLS}" if static.tls else "replica"
    if len(peers) != 1:
        own = static.addresses[static.own]
        raise SettingError(f"replication.peers is set, so the other brokers need a listener: --listen {scheme}://{own}")
    if peers[0].scheme != scheme:
        raise SettingError(
            f"--listen {peers[0]} has no TLS, and with {PROTOCOL}=SSL brokers connect to each other inside TLS: "
            f"listen on {scheme}://{peers[0].address}"
            if static.tls
            else f"--listen {peers[0]} is inside TLS, and brokers connect to each other without it: "
            f"--set {PROTOCOL}=SSL, on every broker"
        )
