"""Membership on a virtual clock: brokers come, die, are paused, leave; the registry fails."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from cluster_world import INTERVAL, LEASE, STEP, One, Registry, Scene, TurningClock, play
from korvet_fast.endpoint import KAFKA, Endpoint
from korvet_fast.errors import SettingError


def test_all_see_the_same_brokers_and_agree_on_the_leaders() -> None:
    async def scenario(scene: Scene) -> None:
        ones = [await scene.start() for _ in range(3)]
        await scene.step(STEP)
        assert [one.ids for one in ones] == [[1, 2, 3]] * 3
        assert set(ones[0].preferred_leaders) == {1, 2, 3}
        assert all(one.preferred_leaders == ones[0].preferred_leaders for one in ones)
        assert ones[2].cluster.controller == 1
        assert [place.address.port for place in ones[1].cluster.nodes(0)] == [9001, 9002, 9003]
        assert ones[1].cluster.nodes(1) == []

    play(scenario)


def test_addresses_of_listeners_never_cross() -> None:
    """A client of one kind of listener is sent to listeners of that kind, wherever they stand in a broker's list."""

    def at(port: int, scheme: str = KAFKA) -> Endpoint:
        return Endpoint(scheme, "127.0.0.1", port)

    lists = (
        [at(1), at(2, "kafka+tls"), at(3, "kafka+tls")],
        [at(12, "kafka+tls"), at(11), at(13, "kafka+tls")],
        [at(21), at(24, "text+tls"), at(22, "kafka+tls")],
        [at(31)],
    )

    async def scenario(scene: Scene) -> None:
        ones = [One(scene.registry, scene.clock, 0) for _ in lists]
        for one, addresses in zip(ones, lists, strict=True):
            await one.cluster.join(addresses)
            await one.cluster.serve()
        await ones[0].cluster.refresh()

        def told(one: One, listener: int) -> dict[int, int]:
            return {node.id: node.address.port for node in one.cluster.nodes(listener)}

        assert told(ones[0], 0) == {1: 1, 2: 11, 3: 21, 4: 31}
        assert told(ones[0], 1) == {1: 2, 2: 12, 3: 22}
        assert told(ones[0], 2) == {1: 3, 2: 13}
        assert told(ones[0], 3) == {}
        await ones[1].cluster.refresh()
        assert told(ones[1], 0) == told(ones[0], 1)
        assert told(ones[1], 1) == told(ones[0], 0)
        for one in ones:
            await one.cluster.close()

    play(scenario)


def test_a_broker_that_starts_is_not_counted_on_before_it_serves() -> None:
    async def scenario(scene: Scene) -> None:
        first = await scene.start()
        second = One(scene.registry, scene.clock, 9100)
        await second.cluster.join([second.address])
        await scene.step()
        assert first.ids == [1]
        await second.cluster.serve()
        await scene.step()
        assert first.ids == [1, 2]
        await second.cluster.close()

    play(scenario)


def test_a_silent_broker_is_expired_after_its_lease_and_its_partitions_move() -> None:
    async def scenario(scene: Scene) -> None:
        first, second, third = [await scene.start() for _ in range(3)]
        await scene.step()
        third.runs = False
        news, version = first.news, first.metadata.number
        await scene.step(LEASE - 2 * STEP)
        assert first.ids == second.ids == [1, 2, 3]
        assert not third.leads
        await scene.step(INTERVAL)
        assert first.ids == second.ids == [1, 2]
        assert set(first.preferred_leaders) == {1, 2}
        assert first.news > news
        assert first.metadata.number > version
        assert "brokers/3" not in scene.registry.keys

    play(scenario)


class ProcessTable:
    """Processes with names of their own, as brokers of one machine have them."""

    def __init__(self) -> None:
        self.count = 0
        self.ended: set[str] = set()

    @property
    def own(self) -> str:
        self.count += 1
        return f"process {self.count}"

    def has_ended(self, name: str) -> bool:
        return name in self.ended


def test_a_broker_whose_process_is_known_to_have_ended_is_not_waited_for() -> None:
    async def scenario(scene: Scene) -> None:
        scene.registry.processes = table = ProcessTable()
        first, second, third = [await scene.start(f"node.id={number}") for number in (1, 2, 3)]
        await scene.step()
        third.runs = False
        table.ended.add(third.cluster.incarnation)
        await scene.step()
        assert first.ids == second.ids == [1, 2]
        second.runs = False
        table.ended.add(second.cluster.incarnation)
        began = scene.clock.monotonic()
        again = await scene.start("node.id=2")  # at another address: nothing else tells that the former one is gone
        assert scene.clock.monotonic() == began
        await scene.step()
        assert first.ids == again.ids == [1, 2]

    play(scenario)


def test_a_broker_that_has_ended_while_the_store_takes_no_change(caplog: pytest.LogCaptureFixture) -> None:
    """As on a full disk: it stays a member until there is room, and the log says once why."""

    async def scenario(scene: Scene) -> None:
        scene.registry.processes = table = ProcessTable()
        first, second = [await scene.start(f"node.id={number}") for number in (1, 2)]
        await scene.step()
        scene.registry.refusing = True
        second.runs = False
        table.ended.add(second.cluster.incarnation)
        caplog.clear()
        await scene.step(INTERVAL)
        assert [(one.id, first.cluster.has_ended(one.incarnation)) for one in first.cluster.members] == [
            (1, False),
            (2, True),
        ]
        assert caplog.text.count("this broker cannot renew its registration") == 1
        scene.registry.refusing = False
        await scene.step()
        assert first.ids == [1]

    play(scenario)


def test_a_broker_that_was_paused_leads_nothing_until_it_is_back() -> None:
    async def scenario(scene: Scene) -> None:
        first, second = await scene.start(), await scene.start()
        await scene.step()
        second.runs = False
        await scene.step(4 * LEASE)
        assert first.ids == [1]
        second.runs = True
        assert not second.cluster.holds_lease()  # its own clock says so, before it has asked anybody
        news = second.news
        await second.cluster.poll()
        assert second.ids == [1]
        assert not second.leads
        assert second.news > news
        await scene.step(2 * STEP)
        assert first.ids == second.ids == [1, 2]
        assert second.leads

    play(scenario)


def test_a_broker_whose_id_was_given_away_leads_nothing_and_waits() -> None:
    async def scenario(scene: Scene) -> None:
        paused = await scene.start("node.id=4")
        paused.runs = False
        heir = await scene.start("node.id=4")
        paused.runs = True
        await scene.step(LEASE)
        assert not paused.leads
        assert heir.leads
        heir.runs = False
        await heir.cluster.close()
        await scene.step(INTERVAL)
        assert paused.leads

    play(scenario)


def test_a_broker_that_took_any_id_comes_back_under_another_one() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.start()
        paused = await scene.start()
        paused.runs = False
        await scene.step(2 * LEASE)
        heir = await scene.start()
        assert heir.cluster.id == 2
        paused.runs = True
        await scene.step(INTERVAL)
        assert paused.cluster.id == 3
        assert paused.ids == heir.ids == [1, 2, 3]

    play(scenario)


def test_who_leaves_leads_until_the_others_have_taken_over_and_gets_nothing_new() -> None:
    async def scenario(scene: Scene) -> None:
        first, second = await scene.start(), await scene.start()
        await scene.step()
        assert not first.cluster.alone
        await first.cluster.leave()
        await scene.step()
        assert first.ids == second.ids == [1, 2]
        assert first.leads
        assert set(first.preferred_leaders) == set(second.preferred_leaders) == {2}
        assert second.cluster.alone
        await scene.step(2 * LEASE)
        assert first.leads
        first.runs = False
        await first.cluster.close()
        await scene.step()
        assert second.ids == [2]
        assert list(scene.registry.keys) == ["brokers/2"]

    play(scenario)


def test_the_last_broker_has_nobody_to_wait_for() -> None:
    async def scenario(scene: Scene) -> None:
        one = await scene.start()
        assert one.cluster.alone
        await one.cluster.leave()
        assert set(one.preferred_leaders) == {-1}
        one.runs = False
        await one.cluster.close()
        assert not scene.registry.keys

    play(scenario)


@pytest.mark.parametrize("fault", ["down", "refusing"])
def test_nobody_is_expired_because_the_registry_failed(fault: str) -> None:
    async def scenario(scene: Scene) -> None:
        ones = [await scene.start() for _ in range(3)]
        await scene.step(INTERVAL)
        setattr(scene.registry, fault, True)
        await scene.step(5 * LEASE)
        # Where records can still be read, nobody can have been taken for dead: all go on.
        assert all(one.leads == (fault == "refusing") for one in ones)
        setattr(scene.registry, fault, False)
        await scene.step(STEP)
        assert all(one.leads and one.ids == [1, 2, 3] for one in ones)
        await scene.step(5 * LEASE)
        assert all(one.leads and one.ids == [1, 2, 3] for one in ones)

    play(scenario)


def test_where_reads_lag_the_lease_ends_with_the_heartbeats() -> None:
    """Its record may have been removed long ago."""

    async def scenario(scene: Scene) -> None:
        first, second = await scene.start(), await scene.start(reads_lag=True)
        await scene.step(INTERVAL)
        assert second.leads
        scene.registry.refusing = True
        await scene.step(LEASE - 2 * INTERVAL)
        assert second.leads
        await scene.step(2 * INTERVAL)
        assert (first.leads, second.leads) == (True, False)
        scene.registry.refusing = False
        await scene.step(STEP)
        assert second.leads

    play(scenario)


def test_a_registry_that_lost_the_last_records_is_written_anew() -> None:
    async def scenario(scene: Scene) -> None:
        first = await scene.start()
        before = dict(scene.registry.keys)
        second = await scene.start()
        await scene.step(LEASE)
        scene.registry.keys = before  # an older copy was promoted
        await scene.step(INTERVAL)
        assert first.ids == second.ids == [1, 2]
        assert first.leads
        assert second.leads

    play(scenario)


def test_a_look_that_is_asked_for_is_news_even_if_nothing_changed() -> None:
    async def scenario(scene: Scene) -> None:
        one = await scene.start()
        await scene.step()
        news = one.news
        await scene.step(LEASE)
        assert one.news == news
        one.cluster.refresh_soon()
        await scene.step()
        assert one.news == news + 1

    play(scenario)


def test_the_loop_looks_when_it_is_asked_to() -> None:
    async def run() -> None:
        one = One(Registry(), TurningClock(), 9001)
        await one.cluster.join([Endpoint(KAFKA, "127.0.0.1", 9001)])
        await one.cluster.serve()
        running = asyncio.create_task(one.cluster.run())
        news = one.news
        one.cluster.refresh_soon()
        async with asyncio.timeout(120):
            while one.news == news:
                await asyncio.sleep(0.01)
        await one.cluster.close()
        await running

    asyncio.run(run())


def test_a_lease_shorter_than_two_heartbeats_is_refused() -> None:
    flags = ("broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=2000")
    with pytest.raises(SettingError, match="at least twice"):
        One(Registry(), TurningClock(), 9001, *flags)


class Life(RuleBasedStateMachine):
    """Up to four brokers, any order of deaths, pauses, stops and failures of the registry."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.scene = Scene()
        self.dead_ports: list[int] = []

    def _do(self, work: object) -> None:
        self.loop.run_until_complete(work)  # type: ignore[arg-type]

    @property
    def running(self) -> list[One]:
        return [one for one in self.scene.ones if one.runs]

    @property
    def healthy(self) -> bool:
        return not (self.scene.registry.down or self.scene.registry.refusing)

    @precondition(lambda self: self.healthy and len(self.scene.ones) < 4)
    @rule()
    def start(self) -> None:
        self._do(self.scene.start())

    @rule(number=st.integers(0, 3))
    def pause_or_resume(self, number: int) -> None:
        if number < len(self.scene.ones):
            self.scene.ones[number].runs ^= True

    @rule(number=st.integers(0, 3))
    def kill(self, number: int) -> None:
        if number < len(self.scene.ones):
            self.dead_ports.append(self.scene.ones.pop(number).address.port)

    @precondition(lambda self: self.healthy and self.dead_ports)
    @rule()
    def restart(self) -> None:
        self._do(self.scene.start(port=self.dead_ports.pop()))

    @precondition(lambda self: self.healthy)
    @rule(number=st.integers(0, 3))
    def stop(self, number: int) -> None:
        if number < len(self.scene.ones) and self.scene.ones[number].runs:
            one = self.scene.ones[number]
            self._do(one.cluster.leave())
            self.scene.ones.remove(one)
            self._do(one.cluster.close())
            one.runs = False

    @rule(fault=st.sampled_from(["down", "refusing"]), on=st.booleans())
    def fail(self, fault: str, on: bool) -> None:
        setattr(self.scene.registry, fault, on)

    @rule(seconds=st.sampled_from([STEP, INTERVAL, LEASE / 2, LEASE + INTERVAL]))
    def wait(self, seconds: float) -> None:
        self._do(self.scene.step(seconds))

    @invariant()
    def ids_are_never_shared(self) -> None:
        ids = [one.cluster.id for one in self.running if one.leads]
        assert len(set(ids)) == len(ids)

    @rule()
    def heal(self) -> None:
        """A lease and a little without faults: every broker that runs is there, and nobody else."""
        self.scene.registry.down = self.scene.registry.refusing = False
        self._do(self.scene.step(LEASE + 2 * INTERVAL))
        expected = sorted(one.cluster.id for one in self.running)
        assert [one.ids for one in self.running] == [expected] * len(expected)
        assert all(one.leads for one in self.running)

    def teardown(self) -> None:
        try:
            self.heal()
        finally:
            self.loop.close()


def test_any_life_ends_in_agreement() -> None:
    run_state_machine_as_test(Life, settings=settings(max_examples=100, stateful_step_count=30, deadline=None))
