"""Brokers that copy each other inside TLS: a kill, a stop of all, and a broker whose certificate is of others."""

import json
import shutil
import threading
import time
from contextlib import ExitStack
from itertools import cycle, pairwise
from pathlib import Path

from click.testing import CliRunner

from faults.redis.load import Load
from faults.replication.test_lost_registry_leader import run, waiting
from faults.replication.trio import PATIENCE, Trio
from korvet_fast.cli import root
from korvet_fast.cli.authority import open_authority


def make_certificates(place: Path) -> Path:
    done = CliRunner().invoke(root, ["certs", str(place)])
    assert done.exit_code == 0, done.output
    return place


def make_trio(place: Path, certificates: Path) -> Trio:
    """They ask each other for certificates. Each has a file of its own for that."""
    trio = Trio(
        place,
        "security.inter.broker.protocol=SSL",
        "ssl.client.auth=required",
        f"ssl.truststore.location={certificates}/ca.pem",
        "ssl.principal.mapping.rules=RULE:^CN=(.*),OU=Clients$/$1/",  # of clients: no broker has such a name
        peers="replica+tls",
    )
    for identity, broker in trio.brokers.items():
        own = shutil.copy(certificates / "server.pem", find_certificate(trio, identity))
        broker.settings = (*broker.settings, f"ssl.keystore.location={own}")
    return trio


def find_certificate(trio: Trio, broker: int) -> Path:
    return trio.place / f"server-{broker}.pem"


def find_messages(trio: Trio, broker: int, words: str) -> list[str]:
    return [text for line in list(trio.brokers[broker].log) if words in (text := str(json.loads(line)["message"]))]


def test_nothing_that_was_acknowledged_is_lost_when_the_leader_is_killed(tmp_path: Path) -> None:
    with make_trio(tmp_path, make_certificates(tmp_path / "certs")) as trio:
        trio.create("load", 1)
        load = Load(trio.bootstrap, partitions=1, names=("one", "two"))
        with load.running():
            load.wait_for(20)
            killed = trio.find_leader("load")
            trio.brokers[killed].kill()
            trio.away = trio.brokers[killed]
            chosen = trio.appoint_registry([one for one in (1, 2, 3) if one != killed])
            trio.appoint("load", 0, chosen)
            load.wait_for(20)
            trio.start(killed)
            trio.away = None
            trio.wait_for("load", lambda one: one.leader > 0 and len(one.isrs) == 3)
            load.wait_for(20)
        assert load.check(trio.brokers[chosen].port) == set()


def test_an_operator_names_the_leader_where_all_have_stopped(tmp_path: Path) -> None:
    """The file of the command is that of a client, which logs in elsewhere."""
    certificates = make_certificates(tmp_path / "certs")
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\nsasl.username=ann\nsasl.password=three apples\n"
        f"ssl.truststore.location={certificates}/ca.pem\nssl.keystore.location={certificates}/client.pem\n"
    )
    with make_trio(tmp_path, certificates) as trio:
        trio.move_registry(1)
        for broker in trio.brokers.values():
            broker.stop()
        trio.away = trio.brokers[1]
        with waiting(trio, 2, 3) as commands:
            command = commands[2][: commands[2].index("--command-config")]
            done = run(command)
            assert done.returncode == 1
            assert "closed the connection without an answer; perhaps its listener has TLS" in " ".join(
                done.stderr.split()
            )
            deadline = time.monotonic() + PATIENCE
            for chosen in cycle(commands):  # who lacks what the other has refuses
                command = commands[chosen][: commands[chosen].index("--command-config")]
                done = run(command, "--command-config", str(config))
                if done.returncode == 0:
                    break
                assert time.monotonic() < deadline, done.stdout + done.stderr + trio.tell()
        assert done.stdout == f"broker {chosen} leads @registry 0\n"


def test_a_certificate_of_another_authority_lets_no_broker_in(tmp_path: Path) -> None:
    """The others go on, and it is told why, once. With a new file it gets in, without a restart."""
    certificates = make_certificates(tmp_path / "certs")
    trio = make_trio(tmp_path, certificates)
    file = find_certificate(trio, 3)
    foreign = open_authority(tmp_path / "other").issue_server(("127.0.0.1",), 90)
    shutil.copy(foreign, file)
    starting = threading.Thread(target=trio.start, args=(3,))
    why = "refuses the certificate of this side"
    with ExitStack() as stack:
        stack.push(trio)
        trio.start(1, 2)
        trio.away = trio.brokers[3]
        starting.start()
        deadline = time.monotonic() + PATIENCE
        while not find_messages(trio, 3, why):
            assert time.monotonic() < deadline, trio.tell()
            time.sleep(0.1)
        trio.run("topic", "create", "load", "--replication-factor", "2", "--config", "min.insync.replicas=2")
        trio.wait_for("load", lambda one: one.leader > 0 and sorted(one.isrs) == [1, 2])
        load = Load(trio.present, partitions=1, names=("one",))
        with load.running():
            load.wait_for(20)
        assert load.check(trio.brokers[1].port) == set()
        assert starting.is_alive(), trio.tell()
        assert any(find_messages(trio, broker, "the client's certificate is refused: ") for broker in (1, 2))
        # TCP may lose the reason: then that is told, until the reason is heard.
        told = find_messages(trio, 3, "waiting for the other brokers: ")
        assert not any(why in one and why in other for one, other in pairwise(told)), trio.tell()
        assert set(find_messages(trio, 3, why)) <= set(told), trio.tell()
        good = shutil.copy(certificates / "server.pem", tmp_path / "good.pem")
        good.rename(file)
        starting.join(PATIENCE)
        assert not starting.is_alive(), trio.tell()
