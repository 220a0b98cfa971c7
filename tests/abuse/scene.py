"""A broker over a store, prepared for attacks, with well-behaved clients beside it that are measured all the time."""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from abuse.attack import Attack
from abuse.cleanup import clean_up, list_topics
from abuse.measure import Waits
from abuse.prepared import SETTINGS, STEADY, prepare, prepare_little
from abuse.process import Sampler, descriptors_of, memory_of
from abuse.row import MIB, Row
from abuse.scale import Scale, known
from abuse.verdict import check_histories
from abuse.watcher import CATCH_UP
from abuse.wire import Line
from broker_process import BrokerProcess
from kafka_server import LIST_GROUPS
from redis_cluster import Cluster
from redis_server import RedisServer, find_program

GUARD = 3000 * MIB  # above the start: the attack is ended, to spare the machine
SETTLED_WITHIN = 60.0  # seconds for the clients to be answered after an attack
LEFT_WITHIN = 30.0  # seconds until the connections of clients that left, and what was freed behind them, are gone
AHEAD = -10  # nice value of what is measured, where we may: other programs on the machine shall not count
LAYOUTS = {"files": ("batches",), "redis": ("entries", "batches"), "cluster": ("entries",)}


class Scene:
    """`tree`: the checkout whose broker runs. `scale`: the broker's settings. `large`: with all that attacks want."""

    def __init__(self, store: str, place: Path, tree: Path, scale: Scale, *, large: bool = True) -> None:
        self.store = store
        self.layouts = LAYOUTS[store]
        self.scale = scale
        self._large = large and store != "cluster"
        self._place = place
        self._ending = ExitStack()
        place.mkdir(parents=True)
        before = [*_ahead(), "env", "-C", str(tree), f"PYTHONPATH={tree}"]
        self.broker = BrokerProcess(
            place / "data",
            *known((*SETTINGS, *scale.settings), tree),
            store=self._start_store(before=_ahead()),
            before=before,
        )
        self.data = place / "data" if store == "files" else None
        self.waits = Waits(place / "waits")
        self.started_with = 0
        self.settled = True  # whether all clients were answered after the last attack

    def _start_store(self, before: list[str]) -> str | None:
        if self.store == "files":
            return None
        program = find_program("redis-distribution")
        if self.store == "cluster":
            cluster = Cluster(program, self._place / "cluster", before=before)
            self._ending.callback(cluster.stop)
            return cluster.start().url
        return self._ending.enter_context(RedisServer(program, self._place / "redis", before=before)).url

    def __enter__(self) -> "Scene":
        self._ending.callback(self.broker.kill)
        try:
            self.broker.start()
            if self._large:
                prepare(self.broker.port, self.layouts, self.scale.producers if self.data else 0)
            else:
                prepare_little(self.broker.port, self.layouts)
            self._topics = list_topics(self.broker.port)
            self.broker.stop()  # what it remembers of producers is saved
            self.broker.start()
            self._start_watcher()
            time.sleep(1.0)
            assert self.settle(time.monotonic()), "the clients are not served"
            self.started_with = memory_of(self.broker.pid)
        except BaseException:
            self._ending.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def _start_watcher(self) -> None:
        echo = self._spawn([*_ahead(), sys.executable, "-m", "abuse.echo"])
        assert echo.stdout is not None
        port = int(echo.stdout.readline())
        given = {"port": self.broker.port, "echo": port, "pid": self.broker.pid, "layouts": self.layouts}
        given |= {"directory": str(self._place) if self.data else "", "waits": str(self._place / "waits")}
        given |= {"history": str(self._place / "history")}
        for name in ("waits", "history"):
            (self._place / name).touch()
        self._watcher = self._spawn([*_ahead(), sys.executable, "-m", "abuse.watcher", json.dumps(given)])

    def _spawn(self, command: list[str]) -> "subprocess.Popen[str]":
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self._ending.callback(_end, process)
        return process

    @property
    def alive(self) -> bool:
        """Whether the broker still runs."""
        return self.broker.process is not None and self.broker.process.poll() is None

    def settle(self, moment: float) -> bool:
        """Until every client has been answered a request that it began after this moment; False if that takes long."""
        deadline = time.monotonic() + SETTLED_WITHIN
        while time.monotonic() < deadline:
            self.waits.read()
            if len(self.waits.roles()) == 1 + 2 * len(self.layouts) and self.waits.asked_since(moment):
                return True
            if self._watcher.poll() is not None or not self.alive:
                return False
            time.sleep(0.02)
        return False

    def run(self, attacks: list[Attack], seconds: float, row: Row) -> Row:
        """These attacks at the same time for so many seconds (none: just the time); fills in the row."""
        pid = self.broker.pid
        row.started_with, row.before = self.started_with, memory_of(pid)
        files, sockets = descriptors_of(pid)
        logged = sum(map(len, self.broker.log))
        sampler = Sampler(pid, self.started_with + GUARD)
        crowd = [self._attacker(each, worker) for each in attacks for worker in range(each.processes)]
        sampler.start()
        began = time.monotonic()
        for process in crowd:
            assert process.stdin is not None
            process.stdin.write(f"{seconds}\n")
            process.stdin.flush()
        sampler.too_much.wait(seconds)
        ended = time.monotonic()
        self._collect(crowd, row, within=0.0 if sampler.too_much.is_set() else 3.0)
        row.seconds = ended - began
        self.settled = self.settle(time.monotonic())
        if not self.settled:
            row.remarks.append(f"after {SETTLED_WITHIN:.0f} s there were clients without an answer")
        self._measure(row, began, time.monotonic())
        sampler.enough.set()
        sampler.join()
        if not self.alive:
            row.remarks.append("the broker died")
            return row
        row.peak = max(sampler.memory, row.before)
        self._look_again(row, files, sockets, sampler.sockets)
        log = "".join(self.broker.log)[logged:]
        row.log_bytes = len(log)
        if "unexpected error" in log or "Traceback" in log:
            row.remarks.append("the log has a traceback: " + log[log.find("Traceback") :][-300:])
        return row

    def _measure(self, row: Row, since: float, until: float) -> None:
        for role in self.waits.roles():
            found = self.waits.longest(role, since, until, row.bound)
            row.waits[role] = found.counted
            row.excused += found.excused
        row.echo = max((w.seconds for w in self.waits.by_role["echo"] if since <= w.start <= until), default=0.0)

    def _look_again(self, row: Row, files: int, sockets: int, most: int) -> None:
        """The figures a moment after the attack: the broker gives freed memory back every ten seconds."""
        deadline = time.monotonic() + LEFT_WITHIN
        while True:
            files_now, sockets_now = descriptors_of(self.broker.pid)
            row.after = memory_of(self.broker.pid)
            gone = sockets_now <= sockets and row.after - row.before <= row.may_keep
            if gone or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        row.files, row.sockets = (files, files_now), (sockets, most, sockets_now)
        try:
            with Line(self.broker.port, timeout=30) as line:
                line.ask(LIST_GROUPS, 2)
        except (OSError, EOFError):
            row.remarks.append("ListGroups is not answered any more")

    def _attacker(self, attack: Attack, worker: int) -> "subprocess.Popen[str]":
        given: dict[str, Any] = {"number": attack.number, "worker": worker, "port": self.broker.port}
        given |= {
            "layouts": self.layouts,
            "session_ms": self.scale.session_ms,
            "data": str(self.data) if self.data else "",
        }
        process = self._spawn([sys.executable, "-m", "abuse.attacker", json.dumps(given)])
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def _collect(self, crowd: list["subprocess.Popen[str]"], row: Row, within: float) -> None:
        deadline = time.monotonic() + within
        for process in crowd:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0.01))
            if process.poll() is None:
                process.kill()
                process.wait()
                continue
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said, f"an attacker of {row.number} failed"
            counts = json.loads(said)
            row.strikes += counts["strikes"]
            row.ended += counts["ended"]

    def clean_up(self) -> None:
        """Delete the topics and groups that attacks have left: what is kept for clients by order is no leak."""
        clean_up(self.broker.port, self._topics)

    def long_waits(self, bound: float) -> list[tuple[float, float]]:
        """Start and end of the clients' waits above this bound."""
        rows = [wait for role in self.waits.roles() for wait in self.waits.by_role[role]]
        return [(wait.start, wait.start + wait.seconds) for wait in rows if wait.seconds > bound]

    def check(self) -> int:
        """Nothing that the well-behaved clients were promised is lost, doubled or out of order: how much that was."""
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        self._watcher.wait(2 * CATCH_UP)
        topics = {layout: f"{STEADY}.{layout}" for layout in self.layouts}
        return check_histories(self.broker.port, self._place / "history", topics)


def _ahead() -> list[str]:
    """The command that runs another before all others, where we may do that."""
    return ["nice", "-n", str(AHEAD - os.nice(0))] if os.geteuid() == 0 else []


def _end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()
