"""The bench of the request path: it measures requests that were answered well, and says so when they are not."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from benchmarks import probe
from benchmarks.probe import VALGRIND
from benchmarks.requests.cases import BrokerError, Case, call, encode, fetch_from, prepare, produce_to, verify
from benchmarks.requests.connections import ACLS, CONNECTIONS, TLS
from benchmarks.requests.discard import Discard
from benchmarks.requests.measure import Figure, measure
from benchmarks.requests.reference import NOMINAL
from benchmarks.requests.wire import Wire, open_wire
from korvet_fast.store.types import OffsetConflict, ReadResult, RecordBatch
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.groups import HEARTBEAT
from korvet_fast.wire.kafka.shapes.produce import PRODUCE
from requirement import missing, require


def run(scenario: Callable[[Wire], Awaitable[None]]) -> None:
    async def main() -> None:
        async with open_wire() as wire:
            await asyncio.wait_for(scenario(wire), 60)

    uvloop.run(main())


def test_every_request_is_answered_well_again_and_again() -> None:
    async def scenario(wire: Wire) -> None:
        cases = await prepare(wire)
        assert {case.name for case in cases if case.budget} == {"Produce 16 KB", "Fetch 64 KB", "Heartbeat"}
        for case in cases:
            await wire.ask(case.frames, 5)
            reply = await wire.ask(case.frames)
            assert case.message.response.decode(reply, _version(case), 1 << 20)["correlation_id"] == 7

    run(scenario)


def test_some_requests_are_measured_behind_acls_and_inside_tls_too() -> None:
    async def scenario() -> None:
        names = set()
        for connected in CONNECTIONS:
            async with asyncio.timeout(60), connected.opened() as wire:
                for case in await connected.prepare(wire):
                    names.add(case.name)
                    await wire.ask(case.frames, 3)
                    assert (await verify(wire, case))["correlation_id"] == 7
        assert {"Produce 16 KB" + ACLS, "Fetch 64 KB" + ACLS, "Produce 64 KB" + TLS} <= names
        assert {name.removesuffix(ACLS).removesuffix(TLS) for name in names} <= names

    uvloop.run(scenario())


def test_a_connection_inside_tls_is_one() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(60), open_wire(encrypted=True) as wire:
            cases = {case.name: case for case in await prepare(wire)}
            (frame,) = cases["Produce 64 KB"].frames
            sent = list(wire.prepare([frame], 2))
            assert all(len(each) > len(frame) and frame[100:200] not in each for each in sent)
            await wire.send(sent)
            answer = PRODUCE.response.decode(wire.read(), _version(cases["Produce 64 KB"]), 1 << 20)
            assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0
            records = 63 << 10
            assert len(await wire.ask(cases["Fetch 64 KB"].frames)) > records

    uvloop.run(scenario())


def test_a_fetch_brings_the_records_it_is_named_for() -> None:
    async def scenario(wire: Wire) -> None:
        await prepare(wire)
        for topic, partitions, least in (("one", 1, 63 << 10), ("many", 100, 900)):
            answer = await call(wire, FETCH, fetch_from(topic, partitions))
            rows = answer["responses"][0]["partitions"]
            assert len(rows) == partitions
            assert all(len(row["records"]) > least for row in rows)

    run(scenario)


def test_an_error_in_an_answer_is_not_measured() -> None:
    async def scenario(wire: Wire) -> None:
        with pytest.raises(BrokerError, match="Produce was answered with error code 3"):
            await call(wire, PRODUCE, produce_to("nowhere", [b"records"]))

    run(scenario)


def test_a_broker_that_hangs_up_ends_the_measurement() -> None:
    async def scenario(wire: Wire) -> None:
        torn = encode(HEARTBEAT, {"group_id": "g", "member_id": "m"})[4:-1]
        with pytest.raises(ConnectionError, match="hung up"):
            await wire.ask([len(torn).to_bytes(4, "big") + torn])

    run(scenario)


def test_a_figure_is_told_in_reference_loops_and_held_against_its_budget() -> None:
    if not VALGRIND.exists():
        missing("valgrind is not installed on this machine")
    figure, *others = uvloop.run(measure(["fetch 64"], rounds=1))
    assert [one.case.name for one in (figure, *others)] == ["Fetch 64 KB", "Fetch 64 KB" + ACLS, "Fetch 64 KB" + TLS]
    assert figure.micros == figure.ratio * NOMINAL > 0
    assert 10 < figure.allocations < 1000
    case = Case("x", HEARTBEAT, [], budget=25)
    assert Figure(case, 25 / NOMINAL, 0).kept
    assert not Figure(case, 26 / NOMINAL, 0).kept
    assert Figure(case._replace(budget=None), 26 / NOMINAL, 0).kept


def test_the_store_discards_all_but_the_first_batch_and_where_a_log_ends() -> None:
    async def scenario() -> None:
        store = Discard()
        await store.open()
        store.open_log("t:0").append([RecordBatch(b"first", 0, 4, 7)], 0, sync=True)
        appending = store.open_log("t:0").append([RecordBatch(b"second", 5, 5, 8)], 5, sync=False)
        assert appending.stored.done() and appending.durable.done()
        assert (await store.open_log("t:0").read(0, 1, 6)) == ReadResult([b"first"], 6)
        assert (await store.bounds("t:0")).end == 6
        with pytest.raises(OffsetConflict):
            store.open_log("t:0").append([RecordBatch(b"third", 5, 5, 9)], 5, sync=False)
        assert await store.save("a/b", b"1", None)
        assert not await store.save("a/b", b"2", None)
        assert await store.scan("a/") == {"a/b": b"1"}

    asyncio.run(scenario())


def _version(case: Case) -> int:
    return int.from_bytes(case.frames[0][6:8], "big")


def test_two_processes_may_compile_the_probe_at_once(tmp_path: Path) -> None:
    if not VALGRIND.exists():
        missing("valgrind is not installed on this machine")
    package = tmp_path / "benchmarks"
    package.mkdir()
    (package / "__init__.py").touch()
    for name in ("probe.py", "probe.c"):
        shutil.copy(Path(probe.__file__).with_name(name), package / name)
    done, slow = tmp_path / "done", tmp_path / "bin" / "cc"  # this compiler ends when it has compiled twice
    done.mkdir()
    slow.parent.mkdir()
    waits = f"touch {done}/$$; until [ $(ls {done} | wc -l) = 2 ]; do sleep 0.01; done"
    slow.write_text(f'#!/bin/sh\n{require("cc")} "$@" && {{ {waits}; }}\n')
    slow.chmod(0o755)
    command = [sys.executable, "-c", "from benchmarks import probe; probe.load().probe_zero()"]
    environment = {**os.environ, "PATH": f"{slow.parent}{os.pathsep}{os.environ['PATH']}"}
    at_once = [subprocess.Popen(command, cwd=tmp_path, env=environment) for _ in range(2)]
    assert [process.wait() for process in at_once] == [0, 0]
    assert [file.name for file in (tmp_path / ".cache").iterdir()] == ["probe.so"]
