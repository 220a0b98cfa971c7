"""Nobody leads the metadata log: what the brokers that are left tell of it, and of partitions whose leader is gone."""

import json
from pathlib import Path
from typing import Any

from faults.replication.metrics import CONTROLLERS, LEADER, OFFLINE, UNDER_REPLICATED, scrape, until
from faults.replication.trio import Trio

PARTITIONS = 6  # two are led by each broker
HEALTHY = (0, 0, 1)


def tell(trio: Trio, broker: int) -> tuple[float, float, float]:
    """Partitions that are offline, those led by this broker that lack copies, and the metadata log's leader."""
    rows = scrape(trio, broker)
    return rows[OFFLINE], rows[UNDER_REPLICATED], rows[LEADER]


def test_metrics_count_what_the_brokers_that_are_left_see(tmp_path: Path) -> None:
    with Trio(tmp_path) as trio:
        trio.create("orders", PARTITIONS)
        for broker in (1, 2, 3):  # each hears of it in its own time
            until(trio, lambda broker=broker: tell(trio, broker) == HEALTHY)
            assert scrape(trio, broker)[CONTROLLERS] == (broker == 1)
        trio.brokers[1].kill()
        trio.away = trio.brokers[1]
        for broker in (2, 3):
            until(trio, lambda broker=broker: tell(trio, broker) == (2, 2, -1))
            assert scrape(trio, broker)[CONTROLLERS] == 0
        trio.brokers[2].kill()
        until(trio, lambda: tell(trio, 3) == (4, 2, -1))
        trio.away = None
        trio.start(1, 2)
        for broker in (1, 2, 3):
            until(trio, lambda broker=broker: tell(trio, broker) == HEALTHY)


def test_cluster_info_marks_who_is_away_and_names_the_command(tmp_path: Path) -> None:
    with Trio(tmp_path) as trio:
        trio.create("orders", PARTITIONS)
        states = [row.split("\t")[-1] for row in trio.run("cluster", "info").splitlines()[-3:]]
        assert states == ["answers"] * 3
        trio.brokers[1].kill()
        trio.away = trio.brokers[1]
        told = (
            "2 partitions without a leader that answers: name the leader of @registry first",
            "6 partitions with a copy that is not in sync",
            *("does not answer", "answers", "answers"),
        )
        until(trio, lambda: tuple(row.split("\t")[-1] for row in ask(trio, 1)[2:]) == told)
        follow(ask(trio, 1)[1], "nobody leads @registry, the metadata log: ", trio)
        until(trio, lambda: "leads @registry" in trio.run_once("cluster", "info").stdout)
        while lines := ask(trio, 1):  # the broker that is asked may not have heard of the last one yet
            advice = lines[1].partition("; ")[0]
            if "korvet-fast" in advice:
                follow(advice, advice[: advice.index("korvet-fast")], trio)
        found = ("leaderless", "lagging", "problems")
        until(trio, lambda: [read_info(trio)[name] for name in found] == [0, 6, []])
        until(trio, lambda: "\tnot registered\n" in trio.run("cluster", "info"))
        away = read_info(trio)["brokers"][0]
        assert (away["broker"], away["host"], away["leads"], away["copies"]) == (1, None, 0, PARTITIONS)


def ask(trio: Trio, code: int) -> list[str]:
    """The lines of `cluster info`, if it ends with this code; otherwise none."""
    done = trio.run_once("cluster", "info")
    return done.stdout.splitlines() if done.returncode == code else []


def read_info(trio: Trio) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(trio.run("cluster", "info", "--json"))
    return found


def follow(line: str, words: str, trio: Trio) -> None:
    """Do what a line says behind these words."""
    assert line.startswith(words + "korvet-fast "), line
    command = line.removeprefix(words).split()[1:]
    assert "--bootstrap" in command
    trio.run(*command[: command.index("--bootstrap")])


def test_cluster_info_says_that_nobody_can_lead(tmp_path: Path) -> None:
    with Trio(tmp_path) as trio:
        trio.create("orders", 3)
        trio.brokers[1].kill()
        trio.brokers[2].kill()
        told = [
            "nobody leads @registry, the metadata log, and nobody can: 1 of 3 brokers answer, and more than half are "
            "needed. Start broker 1 or 2",
            "2 partitions without a leader that answers: name the leader of @registry first",
        ]
        until(trio, lambda: ask(trio, 1)[1:3] == told)


def test_the_loss_of_a_broker_is_told_once(tmp_path: Path) -> None:
    with Trio(tmp_path, "offsets.retention.check.interval.ms=500") as trio:
        trio.create("orders", PARTITIONS)
        before = len(trio.brokers[3].log)

        def lines(begin: str) -> list[str]:
            told = map(json.loads, list(trio.brokers[3].log[before:]))
            found = [row["message"] for row in told if row["level"] in ("warning", "error")]
            return [line for line in found if line.startswith(begin)]

        expiry = "no committed offsets expire"
        for gone in (1, 2):
            trio.brokers[gone].kill()
            until(trio, lambda gone=gone: tell(trio, 3)[0] == 2 * gone and lines(f"broker {gone}: ") != [])
            until(trio, lambda: lines(expiry) != [])
        for gone in (1, 2):
            (line,) = lines(f"broker {gone}: ")
            assert "Connection refused" in line
        assert len(lines(expiry)) == 1


def test_a_broker_that_is_away_cannot_be_named(tmp_path: Path) -> None:
    with Trio(tmp_path) as trio:
        trio.create("orders", 1)
        trio.run("topic", "create", "alone", "--partitions", "1", "--replication-factor", "1")
        (owner,) = trio.describe("alone")[0].replicas
        leader = trio.find_leader("orders")
        late, other = (broker for broker in (3, 2, 1) if broker != leader)
        trio.move_registry(leader)
        trio.brokers[late].kill()
        trio.away = trio.brokers[late]

        def refuse(topic: str, broker: int, *more: str) -> str:
            done = trio.run_once("partition", "lead", topic, "0", "--broker", str(broker), *more)
            assert done.returncode == 1
            return " ".join(done.stderr.split())

        began = f"broker {late} has a copy of orders 0, but "
        instead = f"Start it, or name one that is in sync, {min(leader, other)} or {max(leader, other)}"
        silent = refuse("orders", late, "--unclean")
        assert f"{began}does not answer" in silent or f"{began}is not registered" in silent
        trio.wait_for("orders", lambda one: len(one.isrs) == 2)
        until(trio, lambda: "not registered" in refuse("orders", late))
        told = f"{began}is not registered: the others take it for gone. {instead}"
        for more in ([], ["--unclean"], ["--unclean", "--yes"]):
            # The broker that is asked may hear a moment later who is in sync.
            until(trio, lambda more=more: told in refuse("orders", late, *more))
        assert f"broker {late} is to lead @registry, but is not registered" in refuse("@registry", late)
        stranger = next(broker for broker in (leader, other) if broker != owner)
        kept = f"broker {stranger} has no copy of alone 0; it is kept by {owner}"
        assert kept in refuse("alone", stranger, "--unclean")
