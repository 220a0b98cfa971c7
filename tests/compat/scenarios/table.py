"""The table of scenarios x clients: what is played, over which stores, and what a client does not have."""

from collections.abc import Callable
from typing import NamedTuple

from compat.drivers import DRIVERS
from compat.record import COMPRESSIONS
from compat.scenarios import admin, data, groups
from compat.secured import KINDS
from compat.world import STORES, Stage

EVERYWHERE = tuple(STORES)
SLOW = ("embedded", "entries")  # groups do not see the layout


class Scenario(NamedTuple):
    play: Callable[[Stage], None]
    stores: tuple[str, ...] = EVERYWHERE


CONSUMER = "the same, group.protocol=consumer"
FORMS = "records of every form"
SCENARIOS: dict[str, Scenario] = {
    **{f"{FORMS}, compression {codec}": Scenario(data.compression(codec)) for codec in COMPRESSIONS},
    "acks 0, 1 and all": Scenario(data.acks),
    "idempotent produce": Scenario(data.idempotence),
    "records of 1 MB": Scenario(data.large_records),
    "record times written": Scenario(data.times_written),
    "offsets found by time": Scenario(data.times),
    "seek, pause, resume": Scenario(data.walk),
    "a version the broker does not know": Scenario(data.future_version, SLOW),
    "the broker is killed between requests": Scenario(data.broker_restart),
    "topics created, described, deleted": Scenario(admin.topics),
    "settings altered": Scenario(admin.configs),
    "partitions added": Scenario(admin.partitions),
    "records deleted": Scenario(admin.delete_records),
    "commits with metadata, to and from another client": Scenario(admin.commits),
    "a group reset by time": Scenario(admin.reset_by_time),
    "groups listed and described": Scenario(admin.list_and_describe),
    "groups deleted": Scenario(admin.delete_group),
    "a group goes on where it was": Scenario(groups.resume, SLOW),
    "three members: one joins, one leaves, one is killed": Scenario(groups.three_members(), SLOW),
    "the same, cooperative-sticky": Scenario(groups.three_members(strategy="cooperative-sticky"), SLOW),
    CONSUMER: Scenario(groups.three_members(protocol="consumer"), SLOW),
    "the same, two languages in one group": Scenario(groups.two_languages("range"), SLOW),
    "a static member restarts": Scenario(groups.static_restart, SLOW),
    "the broker restarts under a group": Scenario(groups.broker_restart, SLOW),
}

_NO_MEMBER = "kcat -G commits when it likes and does not say so; a test of its own reads with it"
_NO_COOPERATION = "the client has only eager assignors"
_CLASSIC = "the client has only the classic group protocol"
_NO_ADMIN = "kcat administers nothing"
_IN_MEMBERS = [name for name, each in SCENARIOS.items() if each.play.__module__ == groups.__name__]

# client -> scenario -> why it cannot be: there its driver must say "unsupported", or end with code 3.
LACKS: dict[str, dict[str, str]] = {
    **{name: {CONSUMER: _CLASSIC} for name in ("kafka_python", "sarama")},
    "aiokafka": {
        CONSUMER: _CLASSIC,
        "the same, cooperative-sticky": _NO_COOPERATION,
        "groups deleted": "aiokafka's administration client does not delete groups",
    },
    "kafkajs": {
        CONSUMER: _CLASSIC,
        "the same, cooperative-sticky": _NO_COOPERATION,
        "the same, two languages in one group": "KafkaJS calls its assignor by a name no other client knows",
        "a static member restarts": "KafkaJS has no static members",
    },
    "kcat": {
        **dict.fromkeys(_IN_MEMBERS, _NO_MEMBER),
        "record times written": "kcat sends no times of its own",
        "seek, pause, resume": "kcat reads from one place to another",
        "topics created, described, deleted": _NO_ADMIN,
        "settings altered": _NO_ADMIN,
        "partitions added": _NO_ADMIN,
        "records deleted": _NO_ADMIN,
        "commits with metadata, to and from another client": _NO_ADMIN,
        "a group reset by time": _NO_ADMIN,
        "groups listed and described": _NO_ADMIN,
        "groups deleted": _NO_ADMIN,
        "SASL OAUTHBEARER": "kcat takes no token, and Debian's librdkafka 2.0.2 is built without OIDC to fetch one",
    },
}

_NONCE = "librdkafka before 2.6.1 sends its nonce twice (librdkafka#4895), which Kafka 4 refuses as well"

# client -> scenario -> why the broker has to refuse it, as Kafka does.
REFUSED: dict[str, dict[str, str]] = {
    "kcat": dict.fromkeys(("SASL SCRAM-SHA-256", "SASL SCRAM-SHA-512"), _NONCE),
}

_FORMS = [name for name in SCENARIOS if name.startswith(FORMS)]

# client -> scenario -> what has to be said about a cell that works.
NOTES: dict[str, dict[str, str]] = {
    name: {"the broker restarts under a group": f"may rebalance while its only broker is away: it {reason}"}
    for name, reason in groups.REJOIN.items()
}
for _name, _reason in groups.PREVIEW.items():
    NOTES.setdefault(_name, {})[CONSUMER] = _reason
for _name in ("kafka_python", "kafkajs"):
    NOTES.setdefault(_name, {}).update(dict.fromkeys(_FORMS, "reads headers without a value, but does not send them"))
NOTES["kcat"] = dict.fromkeys(_FORMS, "text only, and headers with a value")


class Cell(NamedTuple):
    scenario: str
    client: str
    store: str

    @property
    def reason(self) -> str:
        """Why the client cannot do it; "" if it can."""
        return LACKS.get(self.client, {}).get(self.scenario, "")


def cells(*, full: bool, turn: int = 0) -> list[Cell]:
    """All of them, or for each client and scenario one of the stores: with each `turn` the next one.

    What shares a broker stands together.
    """
    found = []
    for row, (scenario, (_, stores)) in enumerate(SCENARIOS.items()):
        for column, client in enumerate(DRIVERS):
            chosen = stores if full else (stores[(row + column + turn) % len(stores)],)
            found += [Cell(scenario, client, store) for store in chosen]
    clients = list(DRIVERS)
    return sorted(found, key=lambda cell: (EVERYWHERE.index(cell.store), clients.index(cell.client)))


def secure_cells() -> list[Cell]:
    """Every client by every kind of security: of these no store sees anything."""
    return [Cell(kind, client, "embedded") for client in DRIVERS for kind in KINDS]


def all_cells() -> list[Cell]:
    """Those of the page."""
    return cells(full=True) + secure_cells()
