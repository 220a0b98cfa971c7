"""Checks the settings of a broker that copies others: its peers, and the file of the secret that they share."""

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from korvet_fast.cli.doctor.finding import Finding, bad, good, warn
from korvet_fast.cli.replication import check_listeners
from korvet_fast.config import Settings
from korvet_fast.core.replication.static_peers import read_static_peers
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError


def examine_peers(settings: Settings, listeners: Sequence[Endpoint]) -> Iterator[Finding]:
    """Read the settings of `replication.peers` as `serve` does; nothing where no peers are set."""
    try:
        peers = read_static_peers(settings)
        check_listeners(listeners, peers)
    except SettingError as error:
        yield bad("peers", str(error))
        return
    if peers is None:
        return
    file = Path(settings.text("replication.secret.file"))
    others = ", ".join(str(broker) for broker in sorted(peers.addresses) if broker != peers.own)
    yield good("peers", f"broker {peers.own} copies {others or 'nobody'}; {file} has a secret")
    if file.stat().st_mode & stat.S_IROTH:
        yield warn("peers", f"everybody on this machine can read {file}, and pass for a broker: chmod o-rwx {file}")
