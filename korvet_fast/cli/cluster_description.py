"""What `cluster info` tells: the brokers, who answers, and what is wrong, with the command that helps."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from korvet_fast.cli.session import count
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.leaders import REGISTRY
from korvet_fast.client.protocol.errors import check_error_code
from korvet_fast.wire.kafka.shapes.quorum import DESCRIBE_QUORUM

METADATA_TOPIC: Final = "__cluster_metadata"  # Kafka's name of the metadata log
ANSWERS, SILENT, UNREGISTERED = "answers", "does not answer", "not registered"

Row = Mapping[str, Any]


class BrokerListing(NamedTuple):
    """A broker. `leads`: the partitions that it leads; `copies`: those of which it has a copy.

    `state`: "answers", "does not answer", or "not registered", and then without an address: the others take it for
    gone.
    """

    broker: int
    host: str | None
    port: int | None
    rack: str | None
    controller: bool
    leads: int
    copies: int
    state: str


class ClusterInfo(NamedTuple):
    """A cluster. `leaderless`: partitions that nobody leads who answers; `lagging`: those with copies not in sync.

    `registry_voters`: the brokers that have the metadata log; `registry_leader`: the one of them that leads it.
    `problems`: sentences; with any of them the exit code is 1.
    """

    cluster: str | None
    controller: int | None
    topics: int
    partitions: int
    leaderless: int
    lagging: int
    registry_leader: int | None
    registry_voters: list[int]
    brokers: list[BrokerListing]
    problems: list[str]


class MetadataLog(NamedTuple):
    """Who leads the metadata log, and its voters. `ends`: of voters that answer, the end of each one's own log.

    `answering`: the brokers that answer, voters or not.
    """

    leader: int | None
    voters: list[int]
    ends: dict[int, int]
    answering: Collection[int]

    @property
    def is_copied(self) -> bool:
        """Whether several brokers have it: then an operator names its leader, and those of partitions."""
        return len(self.voters) > 1


async def describe_cluster(cluster: Cluster) -> ClusterInfo:
    """Ask one broker about all, and all whether they answer. Raises `ClientError`."""
    answer = await cluster.metadata(None)
    log = await _find_metadata_log(cluster)
    partitions = [(topic["name"], row) for topic in answer["topics"] for row in topic["partitions"]]
    brokers = _list_brokers(answer, [row for _, row in partitions], log)
    present = {row.broker: f"{row.host}:{row.port}" for row in brokers if row.state == ANSWERS}
    leaderless = [(topic, row) for topic, row in partitions if row["leader_id"] not in present]
    problems = []
    if log.is_copied and log.leader is None:
        problems.append(_explain_registry(log, present))
    if leaderless:
        problems.append(_explain_partitions(log, present, leaderless))
    controller = answer["controller_id"]
    return ClusterInfo(
        answer["cluster_id"],
        controller if controller >= 0 else None,
        len(answer["topics"]),
        len(partitions),
        len(leaderless),
        sum(not present.keys() & row["isr_nodes"] >= set(row["replica_nodes"]) for _, row in partitions),
        log.leader,
        log.voters,
        brokers,
        problems,
    )


async def _find_metadata_log(cluster: Cluster) -> MetadataLog:
    """What the brokers know of who keeps the metadata: the leader of the highest epoch. Raises `ClientError`."""
    asked = {"topics": [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]}
    rows: dict[int, Row] = {}
    for broker, answer in (await cluster.ask_each(DESCRIBE_QUORUM, asked)).items():
        check_error_code(f"the metadata log at broker {broker}", answer["error_code"])
        ((rows[broker],),) = (topic["partitions"] for topic in answer["topics"])
    # A leader whose disk takes nothing says so itself; the others only see that it answers.
    led = [
        (row["leader_epoch"], row["leader_id"])
        for row in rows.values()
        if rows.get(row["leader_id"], row)["leader_id"] >= 0
    ]
    voters = {voter["replica_id"] for row in rows.values() for voter in row["current_voters"]}
    ends = {
        broker: voter["log_end_offset"]
        for broker, row in rows.items()
        for voter in row["current_voters"]
        if voter["replica_id"] == broker
    }
    return MetadataLog(max(led)[1] if led else None, sorted(voters), ends, rows.keys())


def _list_brokers(answer: Row, partitions: Sequence[Row], log: MetadataLog) -> list[BrokerListing]:
    """The brokers of Metadata's answer, and those that have the metadata log."""
    registered = {row["node_id"]: row for row in answer["brokers"]}
    listings = []
    for broker in sorted(registered.keys() | set(log.voters)):
        row = registered.get(broker, {})
        silent = SILENT if row else UNREGISTERED
        listings.append(
            BrokerListing(
                broker,
                row.get("host"),
                row.get("port"),
                row.get("rack"),
                broker == answer["controller_id"],
                sum(each["leader_id"] == broker for each in partitions),
                sum(broker in each["replica_nodes"] for each in partitions),
                ANSWERS if broker in log.answering else silent,
            )
        )
    return listings


def _explain_registry(log: MetadataLog, present: Mapping[int, str]) -> str:
    """Why nobody leads the metadata log, and what helps. `present`: the addresses of the brokers that answer."""
    unled = f"nobody leads {REGISTRY}, the metadata log"
    ends = log.ends
    if len(ends) > len(log.voters) // 2:
        return f"{unled}: {_write_command(REGISTRY, 0, max(ends, key=ends.__getitem__), present)}"
    away = " or ".join(str(voter) for voter in log.voters if voter not in ends)
    return (
        f"{unled}, and nobody can: {len(ends)} of {count(len(log.voters), 'broker')} answer, and more than half are "
        f"needed. Start broker {away}"
    )


def _explain_partitions(log: MetadataLog, present: Mapping[int, str], leaderless: Sequence[tuple[str, Row]]) -> str:
    """How many partitions nobody leads, and what helps."""
    told = f"{count(len(leaderless), 'partition')} without a leader that answers"
    if log.is_copied and log.leader is None:
        return f"{told}: name the leader of {REGISTRY} first"
    if log.is_copied:
        for topic, row in leaderless:
            heirs = _find_heirs(row, present)
            if heirs:
                more = "; korvet-fast topic describe says which others" if len(leaderless) > 1 else ""
                return f"{told}: {_write_command(topic, row['partition_index'], heirs[0], present)}{more}"
    return f"{told}: korvet-fast topic describe says which"


def _find_heirs(row: Row, present: Collection[int]) -> list[int]:
    """The brokers in sync that answer, in the order of the replicas, but for the first one.

    If that one answers and does not lead, its copy may be gone: it is named where there is no other.
    """
    found = [broker for broker in row["replica_nodes"] if broker in row["isr_nodes"] and broker in present]
    return sorted(found, key=lambda broker: broker == row["replica_nodes"][0])


def _write_command(topic: str, partition: int, broker: int, present: Mapping[int, str]) -> str:
    return f"korvet-fast partition lead {topic} {partition} --broker {broker} --bootstrap {present[broker]}"
