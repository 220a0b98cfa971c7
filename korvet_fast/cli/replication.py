"""Replication as `serve` sets it up from replication.peers."""

from pathlib import Path

from korvet_fast.cli.broker_options import BrokerOptions
from korvet_fast.cli.store import make_files
from korvet_fast.core.replication.replication import Replication
from korvet_fast.core.replication.static_peers import StaticPeers, read_static_peers
from korvet_fast.errors import SettingError
from korvet_fast.wire.dialects import OF_PEERS


def make_replication(options: BrokerOptions) -> Replication | None:
    """Make this broker's part of replication; None without replication.peers. Raises `SettingError`."""
    static = read_static_peers(options.settings)
    _check_listeners(options, static)
    if static is None:
        return None
    if not isinstance(options.place, Path):
        raise SettingError(
            "replication.peers are for brokers over files; a Redis makes copies of its own: leave them out"
        )
    from korvet_fast.client.replica_peers import ReplicaPeers  # the client is a tenth of a second to import

    files = make_files(options.place, options.settings)
    return Replication(static, files, ReplicaPeers(static), options.settings)


def _check_listeners(options: BrokerOptions, static: StaticPeers | None) -> None:
    """Raises `SettingError` where the listeners and replication.peers do not belong together."""
    peers = [endpoint for endpoint in options.listeners if endpoint.scheme in OF_PEERS]
    if static is None:
        if peers:
            raise SettingError(f"--listen {peers[0]} is for replication.peers, and none are set")
    elif len(peers) != 1:
        raise SettingError(
            f"replication.peers is set, so the other brokers need a listener: --listen replica://{static.addresses[static.own]}"
        )
