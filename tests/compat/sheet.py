"""The matrix as a page: drawn from what the tests saw, never by hand."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from compat.drivers import DRIVERS
from compat.scenarios.table import LACKS, NOTES, REFUSED, SCENARIOS, all_cells
from compat.secured import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"

LACKING = "\N{EN DASH}"
_HEAD = f"""# Compatibility

Drawn by `make matrix` from test results; do not edit. Every client is the real one, unmodified, driven by a small
program of its own (`tests/compat/clients/`), and every cell is a test (`tests/compat/scenarios/`). ✓ works · ✗ does
not; with a number it must not, and the test checks that · {LACKING} the client has no such feature, and the test checks
that it says so · numbers: see below.

"""
_SECURITY = """\
Each writes, reads, and reads as a member of a group that it describes (kcat describes none), through the
listeners `kafka+tls` and `kafka+sasl+tls` of a broker whose [ACLs](security.md#acls) let it do so only by the name that
it has shown. The store is the embedded one: none sees how a client came.

"""
# title -> (what is said below it, the rows, the stores they are about)
_TABLES: dict[str, tuple[str, Iterable[str], tuple[str, ...]]] = {
    "The embedded store": ("", SCENARIOS, ("embedded",)),
    "Redis: the layouts `entries` and `batches`, groups over `entries`": ("", SCENARIOS, ("entries", "batches")),
    "Security": (_SECURITY, KINDS, ("embedded",)),
}
_PROGRAMS = f"""
## Programs over Kafka

Tested by `make test-tools` (`tests/compat/tools/`): each makes its own topics, is killed with `kill -9`, and started
again.

| | files | Redis, `batches` | Redis, `entries` | what is looked at |
|---|:-:|:-:|:-:|---|
| Kafka Connect 4.1.1, distributed | ✓ | ✓ | ✓ | lines of a file through a topic into a file: each once |
| MirrorMaker 2 4.1.1 | ✓ | ✓ | ✓ | records, each once, and the offset of a group |
| Kafka Streams 4.1.1 | ✓ | ✓ | ✓ | a store and a store of windows, restored when their directory is lost |
| Faust (faust-streaming 0.15.3) | ✓ | ✓ | {LACKING} | a table, restored from its changelog |
| Quix Streams 3.28.1 | ✓ | ✓ | ✓ | state, restored when its directory is lost |

Faust commits by a list of all offsets between two records. Over `entries` these are a million for each second without
a record, which takes minutes and memory: use `storage.layout=batches`. Records that wait while Faust restores its
tables may be counted twice, or not at all, over Apache Kafka as well: Faust reads on before it seeks to the offsets
that it has committed. Exactly-once modes need transactions, which this version refuses with
TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

## What tools are told

- **Which Kafka this is**: `metadata.version` and `inter.broker.protocol.version` 4.0-IV3, a quorum of one voter.
- **ACLs**: SECURITY_DISABLED without `authorizer=acl`, as by a Kafka without an authorizer; with it as by Kafka's
  StandardAuthorizer. A SASL client on `kafka://` gets ILLEGAL_SASL_STATE at once.
- **Quotas** of users and client ids hold ([security](security.md#quotas)); there are none of addresses. Delegation
  tokens and share groups are unsupported.
- **`kafka-leader-election`, `kafka-reassign-partitions`**, over one copy: nothing to elect, and to stay succeeds.
- **`__consumer_offsets`** is not there, and no look makes it. A tool that reads it (Burrow) sees topics and no groups;
  tools that ask the coordinator see all.
- **Lag over `entries`** is to them a difference of offsets: [how to read it](redis.md#a-topic-is-a-stream).
- **OffsetFetch of versions 2 to 5 with an error of the group** repeats it in each partition that was asked for, where
  Kafka leaves the partitions out: aiokafka 0.14 would take them for never committed, and read all records again.
- **Settings without an effect** are kept and shown: [topic settings](topic-settings.md).
"""


class Outcome(NamedTuple):
    """One cell that was tested. `version`: the client's name and version as it told them."""

    scenario: str
    client: str
    store: str
    version: str
    passed: bool


def complete(outcomes: Iterable[Outcome]) -> bool:
    """Whether every cell of the full matrix is among them."""
    return {(each.scenario, each.client, each.store) for each in outcomes} >= {tuple(cell) for cell in all_cells()}


def draw(outcomes: list[Outcome]) -> str:
    """The page, in Markdown."""
    versions = {each.client: each.version for each in outcomes}
    clients = [client for client in DRIVERS if client in versions]
    said = [text for table in (LACKS, REFUSED, NOTES) for client in clients for text in table.get(client, {}).values()]
    notes = list(dict.fromkeys(said))
    page = _HEAD
    for title, (text, scenarios, stores) in _TABLES.items():
        page += f"## {title}\n\n{text}| | {' | '.join(versions[client] for client in clients)} |\n"
        page += "|---" + "|:-:" * len(clients) + "|\n"
        for scenario in scenarios:
            row = [_mark(outcomes, scenario, client, stores, notes) for client in clients]
            page += f"| {scenario} | {' | '.join(row)} |\n"
        page += "\n"
    return page + "".join(f"{number}. {text}\n" for number, text in enumerate(notes, 1)) + _PROGRAMS


def _mark(outcomes: list[Outcome], scenario: str, client: str, stores: tuple[str, ...], notes: list[str]) -> str:
    found = [
        each.passed for each in outcomes if (each.scenario, each.client) == (scenario, client) and each.store in stores
    ]
    if not all(found):
        return "✗"
    reason = LACKS.get(client, {}).get(scenario)
    if reason is not None:
        return f"{LACKING} {notes.index(reason) + 1}"
    refused = REFUSED.get(client, {}).get(scenario)
    if refused is not None:
        return f"✗ {notes.index(refused) + 1}"
    note = NOTES.get(client, {}).get(scenario)
    return "✓" if note is None else f"✓ {notes.index(note) + 1}"
