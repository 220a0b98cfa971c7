"""The one table of commands. PRODUCE is not in it: its lines come in runs, and `api.produce` reads them natively."""

from collections.abc import Mapping
from typing import Final

from korvet_fast.wire.text.api import replicas
from korvet_fast.wire.text.api.consume import consume
from korvet_fast.wire.text.api.groups import heartbeat, join, leave, sync
from korvet_fast.wire.text.api.offsets import commit, offset
from korvet_fast.wire.text.api.ping import ping
from korvet_fast.wire.text.arguments import Usage
from korvet_fast.wire.text.costs import of_consume, of_members
from korvet_fast.wire.text.session import Command

_MEMBER: Final = "group topic consumer generation"

COMMANDS: Final[Mapping[str, Command]] = {
    "PING": Command(Usage(""), ping),
    "CONSUME": Command(
        Usage("topic partition offset [max=n] [encoding=plain|percent|base64]"), consume, of_consume, reads=True
    ),
    "JOIN": Command(Usage("group topic consumer [assignor=round_robin|range]"), join, of_members),
    "SYNC": Command(Usage(_MEMBER), sync),
    "HEARTBEAT": Command(Usage(_MEMBER), heartbeat),
    "LEAVE": Command(Usage(_MEMBER), leave, of_members),
    "COMMIT": Command(Usage(f"{_MEMBER} partition offset"), commit),
    "OFFSET": Command(Usage("group topic partition"), offset),
    "CHALLENGE": Command(Usage("broker_id nonce"), replicas.challenge),
    "PROVE": Command(Usage("proof"), replicas.prove),
    "REPLICA_FETCH": Command(Usage("topic partition replica_id offset [max_bytes=n] [epoch=n]"), replicas.fetch),
    "SET_PARTITION_ROLE": Command(Usage("topic partition leader|follower"), replicas.set_role),
}
