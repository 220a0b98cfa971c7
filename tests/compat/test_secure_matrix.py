"""Every client by every kind of security: it writes and reads, alone and in a group, and the broker knows who it is."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from compat.client import Client, open_client
from compat.clients.kcat.commands import secure
from compat.clients.security import VARIABLE
from compat.drivers import DriverError, Unsupported
from compat.group_scene import MemberProcess
from compat.record import Record
from compat.scenarios.table import REFUSED, Cell, secure_cells
from compat.secured import KINDS, PATIENCE, Kind, SecureBroker, secure_broker

RECORDS = [Record(b"key", b"value"), Record(b"large", b"x" * 900_000), Record(None, b"last")]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with secure_broker(tmp_path_factory.mktemp("secure")) as running:
        yield running


@pytest.mark.parametrize("cell", secure_cells(), ids=lambda cell: f"{cell.client}-{KINDS[cell.scenario].name}")
def test_cell(
    cell: Cell,
    topic: str,
    broker: SecureBroker,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    kind = KINDS[cell.scenario]
    with open_secure(cell.client, kind, broker, monkeypatch) as client:
        said = client.ask("describe")
        record_property("cell", [*cell, f"{said['client']} {said['version']}"])
        place = f"{kind.name}-{topic}"
        if cell.reason:
            with pytest.raises(Unsupported):
                client.produce(place, RECORDS)
            return
        if cell.scenario in REFUSED.get(cell.client, {}):
            with pytest.raises(DriverError, match="Authentication failed due to invalid credentials"):
                client.produce(place, RECORDS)
            return
        client.produce(place, RECORDS, idempotent=True)
        assert client.consume(place, len(RECORDS)) == RECORDS
        read = read_by_kcat if cell.client == "kcat" else read_in_a_group
        read(client, broker.bootstrap(kind), place)


def open_secure(
    name: str, kind: Kind, broker: SecureBroker, monkeypatch: pytest.MonkeyPatch
) -> AbstractContextManager[Client]:
    """A client; it and every member that starts from now on are told this kind's security."""
    given = broker.security(kind)._asdict()
    monkeypatch.setenv(VARIABLE, json.dumps({key: value for key, value in given.items() if value}))
    return open_client(name, broker.bootstrap(kind))


def read_in_a_group(client: Client, bootstrap: str, topic: str) -> None:
    """A member of this client reads and commits all there is; meanwhile the client describes the group."""
    group = f"{topic}-group"
    member = MemberProcess(client.name, bootstrap=bootstrap, topic=topic, group=group)
    try:
        until = time.monotonic() + PATIENCE
        while member.committed != {0: len(RECORDS)}:
            member.check()
            assert time.monotonic() < until, (member.said, member.errors)
            time.sleep(0.02)
        assert member.read == [(0, offset) for offset in range(len(RECORDS))]
        assert client.ask("describe_group", group=group) == {"state": "Stable", "members": 1}
        member.leave()
    finally:
        if not member.ended:
            member.kill()


def read_by_kcat(client: Client, bootstrap: str, topic: str) -> None:
    """kcat as a member, which leaves at the end of the topic; the second begins where the first has committed."""
    command = ["kcat", "-b", bootstrap, "-G", f"{topic}-group", "-e", "-q", "-f", "%o\n", *secure()]
    command += ["-X", "auto.offset.reset=earliest", topic]
    for expected in ([0, 1, 2], [3]):
        printed = subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True, text=True).stdout
        assert [int(line) for line in printed.split()] == expected
        client.produce(topic, RECORDS[:1])


def test_each_kind_has_its_own_topics(topic: str, broker: SecureBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in KINDS.values():
        with open_secure("confluent", kind, broker, monkeypatch) as client:
            for other in KINDS.values():
                if other != kind:
                    with pytest.raises(DriverError, match="TOPIC_AUTHORIZATION_FAILED"):
                        client.produce(f"{other.name}-{topic}", RECORDS[:1])
