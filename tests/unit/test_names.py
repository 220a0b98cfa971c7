"""The field's words stay: identifiers that Kafka, Redis or Arrow have another name for do not come back.

The table is that of the project's naming rules. A word is forbidden where it would mean the right column's; a word that
is a common one elsewhere is forbidden in the folders only where it had the private meaning.
"""

import io
import re
import tokenize
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "korvet_fast"
EVERYWHERE = ("korvet_fast", "tests", "benchmarks", "examples", "python", "rust")
CORE, STORE, REDIS = "korvet_fast/core", "korvet_fast/store", "korvet_fast/store/redis"
HOUSE = tuple(folder for folder in EVERYWHERE if folder != "examples")  # an example's words are those of its shop
NET, WIRE, SPARK = "korvet_fast/net", "korvet_fast/wire", "korvet_fast/spark"


class Rule(NamedTuple):
    """Identifiers that are not to be used in these files and folders, and what is used instead."""

    words: str  # separated by spaces
    right: str
    within: tuple[str, ...] = (PACKAGE,)
    but: Mapping[str, str] = MappingProxyType({})  # files where the word means something else, and what


RULES = (
    # core
    Rule("Extent", "PartitionLog", EVERYWHERE),
    Rule("Tenure tenure tenures", "Leadership", EVERYWHERE),
    Rule("Host", "PartitionCollaborators, and nothing that holds everything", EVERYWHERE),
    Rule("Single", "layout `entries`", EVERYWHERE),
    Rule("single", "entries_layout", (CORE, STORE)),
    Rule("Facts", "BatchSummary", EVERYWHERE),
    Rule("Numbers numbers", "ProducerSequence, producer_sequence", (f"{PACKAGE}/_native.pyi",)),
    Rule("Numbers", "ProducerSequence", EVERYWHERE),
    Rule("Stored", "BatchMetadata, CommitMessage", HOUSE),
    Rule("Placed Appended", "AppendResult", EVERYWHERE),
    Rule("Epochs", "LeaderEpochCache", EVERYWHERE),
    Rule("Watermark", "HighWatermark", EVERYWHERE),
    Rule("lift", "advance, or up_convert", EVERYWHERE),
    Rule("Watch", "DelayedFetch, Observer", EVERYWHERE),
    Rule("Round", "PendingFlush", EVERYWHERE),
    Rule("_see look _look look_soon _look_soon", "refresh, refresh_soon"),
    Rule("readable", "available_bytes", (CORE, SPARK)),
    Rule("cut", "truncate, delete_records, apply_retention", (CORE, STORE)),
    Rule("fork forks forked _forked", "the store generation, or the replication history", EVERYWHERE),
    Rule("doubt doubtful _doubts", "uncertain, Recovering", (CORE, STORE)),
    Rule("lead", "become_leader", EVERYWHERE),
    Rule("_deleted _held", "a state of Leadership, or the name of what is held", (CORE, STORE)),
    Rule("_refusal _waits", "the error, the conditions that are waited for"),
    Rule("confirm", "verify_leadership", (CORE, STORE)),
    Rule("top _gap _bare", "last_record_end, known gap", (CORE, STORE)),
    Rule("run_eagerly together sliced", "run_inline, gather, gather_paced", (CORE, NET, WIRE)),
    Rule("find_led", "leader_partitions", EVERYWHERE),
    Rule("Claims", "LeaderDirectory", EVERYWHERE),
    Rule("Standing holds", "Lease, is_valid", (CORE,)),
    Rule(
        "Place Part",
        "TopicPartition, TopicIdPartition, PartitionOffset, EncodedPart",
        EVERYWHERE,
        but={"benchmarks/requests/reference.py": "a row of the reference loop, which never changes"},
    ),
    Rule("Member", "BrokerRegistration", (f"{CORE}/cluster",)),
    Rule("beat heard hear", "heartbeat, last_heartbeat", (CORE, STORE, "korvet_fast/client")),
    Rule(
        "targets",
        "preferred_leaders",
        (f"{CORE}/cluster",),
        but={f"{CORE}/cluster/leader_reconciler.py": "the wanted leaders, compared with the present ones"},
    ),
    Rule("tend bury", "poll, expire", EVERYWHERE),
    Rule("Identity", "ClusterIdentity, ReplicationHistory", EVERYWHERE),
    Rule("Keeper Keepers", "GroupRuntime", EVERYWHERE),
    Rule("slot", "coordinator partition", (f"{CORE}/groups",)),
    Rule("Position Commit", "OffsetAndMetadata, GroupCommit", (PACKAGE,)),
    Rule("Ticket", "waiter", EVERYWHERE),
    Rule("Records", "GroupStore, BrokerRegistrations", (f"{CORE}/groups", f"{CORE}/cluster")),
    Rule("leap forgive", "bump_epoch, extend_deadlines", EVERYWHERE),
    Rule("Moved", "CoordinatorFenced", EVERYWHERE),
    Rule("Finding Stage", "ReconcileCase, MemberState", (CORE,)),
    # store
    Rule("Entry", "RecordBatch", (PACKAGE,)),
    Rule("Form form", "LogFormat, log_format", (CORE, STORE)),
    Rule("Form", "Encoding, ReplyReader", EVERYWHERE),
    Rule("Piece Pieces", "FramePart, ConvertedBatch", EVERYWHERE),
    Rule(
        "pieces piece",
        "SegmentLimits, segment_limits",
        (CORE, STORE),
        but={
            "korvet_fast/store/embedded/reader.py": "a part of the bytes read",
            "korvet_fast/store/embedded/registry.py": "a part of the bytes read",
        },
    ),
    Rule("Page ArrowPage", "ReadResult, RecordColumns, ArrowColumns, FetchedBatches", EVERYWHERE),
    Rule("attach attached Attached", "acquire, LeadershipGrant", (PACKAGE,)),
    Rule("Stale Detached", "OffsetConflict, NotLeader", EVERYWHERE),
    Rule("Change", "CompareAndSet", (PACKAGE,)),
    Rule("refusal", "durability_error", (REDIS,)),
    Rule("listen", "on_data_loss, on_history_change", (STORE,)),
    Rule("show", "mirror_offset", (STORE,)),
    Rule("follow Follower", "notify, StreamListener", (STORE, CORE)),
    Rule("Lane LaneDown LaneLost lane lanes", "Pipeline", ("korvet_fast", "tests", "benchmarks")),
    Rule("mark marks Marks fence", "fencing_token, FencingTokens, or high_watermark", (CORE, STORE)),
    Rule(
        "Group group groups",
        "AppendTransaction, transaction",
        (REDIS,),
        but={
            "korvet_fast/store/redis/log/mirror.py": "a consumer group",
            "korvet_fast/store/redis/store.py": "a consumer group, and the capability `Store.groups`",
            "korvet_fast/store/redis/connection/pipeline.py": "replies joined to one",
        },
    ),
    Rule("Trouble trouble Resolver resolver", "AppendFailure, AppendRecovery", (STORE,)),
    Rule("survey learn", "read_bounds, update_bounds, or what is asked for: fetch_metadata, update_leader"),
    Rule("Calls", "IdempotentCalls", (STORE,)),
    Rule("Cutter", "Retention", EVERYWHERE),
    # net, wire, native, clients
    Rule(
        "Turnstile Quiet Admission",
        "ConnectionRateLimiter, RateLimitedLog, ConnectionQuota",
        (NET, "korvet_fast/rate_limited_log.py"),
    ),
    Rule("Wakefulness Hangup Door", "BusyPoll, CloseConnection, Listener", EVERYWHERE),
    Rule("hurry _hurry", "release_memory, send_now", EVERYWHERE),
    Rule("weigh _weigh mistaken", "cost, detect_protocol", (NET, WIRE, CORE, STORE)),
    Rule("Parked", "DelayedJoin", EVERYWHERE),
    Rule("faults", "errors"),
    Rule(
        "offer operations",
        "api_versions, acl_operations",
        (WIRE,),
        but={"korvet_fast/wire/kafka/api/acl_operations.py": "the operations of ACLs"},
    ),
    Rule(
        "admit restamp blobs pack_parts assemble",
        "the names of `_native`",
        EVERYWHERE,
    ),
    Rule("span", "slice_batches", (CORE, NET, WIRE)),
    Rule("Shipment Parcel Lot Pen", "ProducerRun, PartitionBatch, Accumulator, Writer", EVERYWHERE),
    Rule("offer _offer", "enqueue", ("korvet_fast/client", "tests/unit/client", "tests/producer_world.py")),
    Rule("Rows", "ArrowRecords, ArrayEncoder, QueuedRows, ColumnsBuilder", EVERYWHERE),
    Rule("pages", "fetcher", (SPARK,)),
    Rule("Bound Question strangers", "OffsetLimit, OffsetQuery, unsupported_options", (PACKAGE, "benchmarks/spark")),
    Rule("Refused", "BrokerError, CommandError, RequestError", EVERYWHERE),
    Rule("Denied", "NoPermission", EVERYWHERE),
)

# Files whose words are data: the table above, and a table of former names for comparisons with old commits.
EXEMPT = {"tests/unit/test_names.py", "benchmarks/check/renamed.py"}


@cache
def words_in(path: Path) -> frozenset[str]:
    """All words of a file, prose too, as `identifiers` gives names: they cost little, and rule most files out."""
    found = frozenset(re.findall(r"\w+", path.read_text()))
    return found | {word.lstrip("_") for word in found}


@cache
def files_in(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted([*place.rglob("*.py"), *place.rglob("*.rs")])


@cache
def identifiers(path: Path) -> frozenset[str]:
    """The names in a file; private ones with and without their underscore."""
    names = _read_names(path)
    return names | {name.lstrip("_") for name in names}


def _read_names(path: Path) -> frozenset[str]:
    if path.suffix == ".rs":
        code = re.sub(r"//[^\n]*|\"(?:[^\"\\]|\\.)*\"", "", path.read_text())
        return frozenset(re.findall(r"\b[A-Za-z_]\w*", code))
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return frozenset(token.string for token in tokens if token.type == tokenize.NAME)


def find(rule: Rule) -> list[str]:
    """Where the rule is broken."""
    words = set(rule.words.split())
    found = []
    for place in rule.within:
        for file in files_in(ROOT / place):
            name = file.relative_to(ROOT).as_posix()
            if words & words_in(file) and name not in EXEMPT and name not in rule.but:
                found += [f"{name}: {word}" for word in sorted(words & identifiers(file))]
    return found


@pytest.mark.parametrize("rule", RULES, ids=[rule.words.split()[0] for rule in RULES])
def test_the_old_word_does_not_come_back(rule: Rule) -> None:
    assert not find(rule), f"say {rule.right}"


def test_exceptions_are_still_needed() -> None:
    """A file named in `but` has one of the rule's words; a path that a rule names exists."""
    for rule in RULES:
        assert all((ROOT / place).exists() for place in rule.within)
        for name in rule.but:
            assert set(rule.words.split()) & identifiers(ROOT / name), (rule.words, name)
