"""Ids: who wants one gets it, unless somebody who may be alive has it."""

import json

import pytest

from cluster_world import LEASE, Scene, play
from korvet_fast.core.cluster.broker_registration import BrokerRegistration, read_registration
from korvet_fast.core.cluster.liveness import Liveness
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError, StoreError


def test_a_record_says_what_was_written() -> None:
    for schemes in (("kafka", "kafka"), ("kafka", "kafka+tls")):
        places = (Endpoint(schemes[0], "a", 1), Endpoint(schemes[1], "::1", 2))
        member = BrokerRegistration(3, "abc", "host", places, "serving", 17)
        assert read_registration(member.write()) == member


def test_an_earlier_broker_reads_the_record_of_one_with_plain_listeners() -> None:
    plain, other = Endpoint("kafka", "a", 1), Endpoint("kafka+tls", "a", 2)
    assert "schemes" not in json.loads(BrokerRegistration(3, "abc", "host", (plain, plain)).write())
    assert json.loads(BrokerRegistration(3, "abc", "host", (plain, other)).write())["schemes"] == ["kafka", "kafka+tls"]


def test_a_broker_started_again_with_tls_precedes_itself() -> None:
    before = BrokerRegistration(3, "abc", "host", (Endpoint("kafka", "a", 1),))
    assert before.precedes(BrokerRegistration(1, "def", "host", (Endpoint("kafka+tls", "a", 1),)))
    assert not before.precedes(BrokerRegistration(1, "def", "host", (Endpoint("kafka", "a", 2),)))
    assert not before.precedes(BrokerRegistration(1, "def", "other", (Endpoint("kafka", "a", 1),)))


def test_without_node_id_the_lowest_free_id_is_taken() -> None:
    async def scenario(scene: Scene) -> None:
        ones = [await scene.start() for _ in range(3)]
        assert [one.cluster.id for one in ones] == [1, 2, 3]
        await ones[1].cluster.close()
        ones[1].runs = False
        assert (await scene.start()).cluster.id == 2
        assert (await scene.start()).cluster.id == 4

    play(scenario)


def test_an_id_that_a_live_broker_has_is_refused_in_words() -> None:
    async def scenario(scene: Scene) -> None:
        first = await scene.start("node.id=7")
        with pytest.raises(SettingError, match=r"node.id=7 belongs to the broker at 127.0.0.1:9001, which is alive"):
            await scene.start("node.id=7")
        with pytest.raises(SettingError, match=r"of its own, or none: then it takes one that is free$"):
            await scene.start("node.id=7")
        with pytest.raises(SettingError, match=r"Give each broker a node.id of its own$"):
            await scene.start("node.id=7", "replication.peers=7@a:1,8@b:1")  # which needs one
        assert first.leads
        assert first.ids == [7]

    play(scenario)


def test_the_id_of_a_dead_broker_is_free_after_its_lease() -> None:
    async def scenario(scene: Scene) -> None:
        first = await scene.start("node.id=7")
        first.runs = False
        before = scene.clock.seconds
        second = await scene.start("node.id=7")
        assert LEASE <= scene.clock.seconds - before < LEASE + 2
        assert second.cluster.id == 7
        assert second.leads

    play(scenario)


def test_the_id_of_a_leaving_broker_is_waited_for() -> None:
    async def scenario(scene: Scene) -> None:
        other = await scene.start()
        first = await scene.start("node.id=7")
        ends = scene.clock.seconds + 5

        async def pass_time() -> None:
            await other.cluster.poll()
            if scene.clock.seconds < ends:
                await first.cluster.poll()
            elif first.runs:
                first.runs = False
                await first.cluster.close()

        first.cluster._state = "leaving"  # as `leave` does, which would wait here
        scene.clock.passing = pass_time
        assert (await scene.start("node.id=7")).cluster.id == 7

    play(scenario)


@pytest.mark.parametrize("flag", [(), ("node.id=2",)])
def test_a_broker_restarted_at_its_address_takes_its_id_at_once(flag: tuple[str, ...]) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.start("node.id=1")
        dead = await scene.start("node.id=2")
        dead.runs = False
        before = scene.clock.seconds
        again = await scene.start(*flag, port=dead.address.port)
        assert again.cluster.id == 2
        assert scene.clock.seconds == before

    play(scenario)


def test_a_broker_restarted_under_another_id_leaves_no_record_behind() -> None:
    async def scenario(scene: Scene) -> None:
        dead = await scene.start("node.id=2")
        dead.runs = False
        await scene.start("node.id=5", port=dead.address.port)
        assert list(scene.registry.keys) == ["brokers/5"]

    play(scenario)


def test_a_claim_of_which_the_answer_was_lost_is_found_again() -> None:
    async def scenario(scene: Scene) -> None:
        scene.registry.forgetful = True
        one = None
        with pytest.raises(StoreError):
            one = await scene.start()
        scene.registry.forgetful = False
        one = await scene.start(port=9001)
        assert one.cluster.id == 1

    play(scenario)


def test_heartbeats_of_which_the_answers_were_lost_do_not_lose_the_record() -> None:
    async def scenario(scene: Scene) -> None:
        first, second = await scene.start(), await scene.start()
        scene.registry.forgetful = True
        await scene.step(3 * LEASE)
        scene.registry.forgetful = False
        await scene.step(LEASE)
        for one in (first, second):
            assert one.ids == [1, 2]
            assert one.leads

    play(scenario)


def test_a_time_in_which_nobody_looked_counts_for_little() -> None:
    liveness = Liveness(9.0, 2.0)
    member = BrokerRegistration(1, "x", "m", (Endpoint("kafka", "a", 1),))
    for now in (0.0, 100.0, 200.0, 300.0, 400.0):
        assert liveness.observe([member], now) == set()
    assert liveness.observe([member], 401.0) == {1}
    assert liveness.observe([member._replace(heartbeat=1)], 402.0) == set()
    assert liveness.observe([member._replace(heartbeat=1, incarnation="y")], 500.0) == set()
