"""ElectLeaders (key 43), versions 0-2: the first replica of a partition becomes its leader (KIP-183, KIP-460).

1 unclean elections; 2 flexible. An unclean election makes the first replica the leader too, in sync or not; Kafka takes
whichever lives. Null elects for all partitions. `@registry`, partition 0, is the metadata log: the broker that is asked
becomes its leader. Where nobody copies anything, no election is needed.
"""

from collections.abc import Iterable

from korvet_fast.core.replication.peers import METADATA_LOG
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.session import Session, Values

_UNCLEAN = 1
_PATIENCE = 5.0  # seconds for the first fetches of copies that were just made


async def elect_leaders(session: Session, request: Values, version: int) -> Values:
    unclean = request["election_type"] == _UNCLEAN
    until = session.broker.clock.monotonic() + min(_PATIENCE, request["timeout_ms"] / 1000)
    pace = session.pace()
    topics = []
    for topic, indexes in _list_partitions(session, request["topic_partitions"]):
        rows = []
        for index in indexes:
            row: Values = {"partition_id": index}
            rows.append(row)
            try:
                await _elect(session, topic, index, unclean=unclean, until=until)
            except KorvetError as error:
                row["error_code"], row["error_message"] = translate(error)
            if pace.due():
                await pace.turn()
        topics.append({"topic": topic, "partition_result": rows})
    return {"replica_election_results": topics}


def _list_partitions(session: Session, asked: list[Values] | None) -> Iterable[tuple[str, Iterable[int]]]:
    if asked is None:
        return [(topic.name, range(len(topic.partitions))) for topic in session.broker.topics]
    return [(row["topic"], row["partitions"]) for row in asked]


async def _elect(session: Session, topic: str, index: int, *, unclean: bool, until: float) -> None:
    """Raises `KorvetError`."""
    broker, log = session.broker, f"{topic}:{index}"
    replication, found = broker.replication, broker.topics.get(topic)
    if replication is not None and log == METADATA_LOG:
        why = await replication.election.become_leader(unclean=unclean)
    elif found is None or not 0 <= index < len(found.partitions):
        raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of topic {topic!r}")
    elif replication is None or replication.replicas.is_led_by(log, found.replicas[index][0]):
        raise KorvetError(Errors.ELECTION_NOT_NEEDED)
    else:
        why = await replication.replicas.appoint(log, found.replicas[index][0], unclean=unclean, until=until)
    if why:
        raise KorvetError(Errors.PREFERRED_LEADER_NOT_AVAILABLE, why)
