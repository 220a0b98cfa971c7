"""Where ZooKeeper is, as `--zookeeper` gives it: `HOST:PORT[,HOST:PORT...][/chroot]`, as in Kafka's `zk.connect`."""

import re
from typing import NamedTuple

from korvet_fast.endpoint import Address, read_bootstrap

# A path of ZooKeeper, which has no empty names, and none that say "here" or "above".
_CHROOT = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[^/\x00-\x1f\x7f-\x9f]+)*")


class ConnectString(NamedTuple):
    """The servers of one ZooKeeper, and the node below which everything is; "" for the root."""

    servers: tuple[Address, ...]
    chroot: str = ""

    @property
    def hosts(self) -> str:
        """The servers alone, as kazoo takes them."""
        return ",".join(map(str, self.servers))

    def __str__(self) -> str:
        return self.hosts + self.chroot


def read_connect_string(text: str) -> ConnectString:
    """Read `127.0.0.1:2181/kafka`. Raises `ValueError` with a sentence."""
    servers, slash, rest = text.partition("/")
    chroot = slash + rest.rstrip("/") if rest else ""
    if not _CHROOT.fullmatch(chroot):
        raise ValueError(f"{text!r}: {chroot!r} is no path of ZooKeeper; write HOST:PORT/NAME")
    return ConnectString(read_bootstrap(servers), chroot)
