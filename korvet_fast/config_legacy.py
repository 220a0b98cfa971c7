"""The broker settings of Kafka 0.7 (`kafka/server/KafkaConfig.scala` of 0.7.2): which of ours each one is (a leaf).

A config file may have them; flags and the environment use our names only. Settings whose names and meanings are the
same in both, `num.partitions` and `topic.partition.count.map`, are in no table here.
"""

import re
from collections.abc import Mapping
from typing import Final

from korvet_fast.config_def import SETTINGS, show

_MINUTE, _HOUR = 60_000, 3_600_000

# Name in 0.7 -> ours, and how many of our units are one of theirs.
MAPPED: Final[Mapping[str, tuple[str, int]]] = {
    "brokerid": ("node.id", 1),
    "max.socket.request.bytes": ("socket.request.max.bytes", 1),
    "max.message.size": ("message.max.bytes", 1),
    "log.file.size": ("log.segment.bytes", 1),
    "log.roll.hours": ("log.roll.ms", _HOUR),
    "log.retention.hours": ("log.retention.ms", _HOUR),
    "log.retention.size": ("log.retention.bytes", 1),
    "log.cleanup.interval.mins": ("log.retention.check.interval.ms", _MINUTE),
    "zk.sessiontimeout.ms": ("zookeeper.session.timeout.ms", 1),
    "zk.connectiontimeout.ms": ("zookeeper.connection.timeout.ms", 1),
}

_OF_A_TOPIC = "a setting of the topic: korvet-fast topic alter NAME --set "
_FLUSH = "durability: what is acknowledged to a client that asks for it is flushed, and there is no timer"

# Name in 0.7 -> the nearest thing here.
NEAREST: Final[Mapping[str, str]] = {
    "port": "--listen legacy://HOST:PORT",
    "hostname": "--advertise legacy://HOST:PORT",
    "log.dir": "--store file:DIRECTORY",
    "zk.connect": "--zookeeper HOST:PORT/CHROOT",
    "enable.zookeeper": "--zookeeper HOST:PORT/CHROOT, or leaving it out",
    "zk.synctime.ms": "zookeeper.session.timeout.ms; the pause between attempts to rebalance is the consumers' own",
    "num.threads": "nothing: one loop serves all connections",
    "socket.send.buffer": "queued.max.request.bytes; the system sizes the buffers of sockets",
    "socket.receive.buffer": "queued.max.request.bytes; the system sizes the buffers of sockets",
    "monitoring.period.secs": "nothing: the log has no periodic statistics",
    "max.topic.name.length": "nothing: a name has 249 characters at most",
    "topic.log.file.size": _OF_A_TOPIC + "segment.bytes=BYTES",
    "topic.log.roll.hours": _OF_A_TOPIC + "segment.ms=MS",
    "topic.log.retention.hours": _OF_A_TOPIC + "retention.ms=MS",
    "topic.log.retention.size": _OF_A_TOPIC + "retention.bytes=BYTES",
    "log.flush.interval": _FLUSH,
    "log.default.flush.interval.ms": _FLUSH,
    "log.default.flush.scheduler.interval.ms": _FLUSH,
    "topic.flush.intervals.ms": _FLUSH,
}


def translate(given: Mapping[str, object]) -> dict[str, object]:
    """The settings of a file, those of Kafka 0.7 by our names and in our units.

    Raises `ValueError` for one of 0.7 that is not taken, naming the nearest, and for one that is given twice.
    """
    translated: dict[str, object] = {}
    for name, value in given.items():
        if name in NEAREST:
            raise ValueError(f"{name} is a setting of Kafka 0.7 that is not taken here; the nearest is {NEAREST[name]}")
        ours, factor = MAPPED.get(name, (name, 1))
        if ours != name and ours in given:
            raise ValueError(f"{name} is what Kafka 0.7 calls {ours}: give one of the two")
        translated[ours] = _convert(name, ours, value, factor) if ours != name else value
    return translated


def _convert(name: str, ours: str, value: object, factor: int) -> object:
    text = show(value).strip() if isinstance(value, bool | int | str) else ""
    converted = str(int(text) * factor) if re.fullmatch("[0-9]{1,19}", text) else text
    try:
        return SETTINGS[ours].parse("-1" if text == "-1" else converted)
    except ValueError:
        units = f", which is {ours} in units of {factor}" if factor != 1 else f", which is {ours}"
        raise ValueError(f"{name}{units}, is {value!r}, but {ours} must be {SETTINGS[ours].legal}") from None
