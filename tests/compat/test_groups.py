"""Consumer groups of real clients: they come, go, die and return, and so does the broker; nothing is left unread."""

import signal
import time
from collections.abc import Callable, Iterator

import pytest

from broker_process import BrokerProcess
from compat.group_scene import play

CLIENTS = ["confluent", "kafka_python", "aiokafka"]
SETTINGS = ("group.initial.rebalance.delay.ms=200", "group.min.session.timeout.ms=1000")

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("groups") / "data", *SETTINGS) as running:
        yield running


@pytest.mark.parametrize(
    ("clients", "strategy"),
    [
        *[((client,) * 3, "range") for client in CLIENTS],
        (("confluent",) * 3, "cooperative-sticky"),
        (("confluent", "kafka_python", "aiokafka"), "roundrobin"),
    ],
    ids=[*CLIENTS, "cooperative", "mixed"],
)
def test_three_members_of_whom_one_joins_late_one_leaves_and_one_is_killed(
    broker: BrokerProcess, topic: str, clients: tuple[str, str, str], strategy: str
) -> None:
    with play(broker, topic) as scene:
        scene.send()
        first, second = (scene.member(client, strategy=strategy, session=2000) for client in clients[:2])
        scene.wait_shared(first, second)
        scene.send()
        third = scene.member(clients[2], strategy=strategy, session=2000)
        scene.wait_shared(first, second, third)
        scene.send()
        scene.wait_read()
        # Nobody died: what was handed over had been committed, unless its reader came too late for that.
        assert scene.doubles == 0 or scene.refused, scene.explain()
        first.leave()
        scene.wait_shared(second, third)
        scene.send()
        second.kill()
        scene.wait_shared(third)
        scene.send()
        scene.wait_read()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_the_broker_restarts_and_nobody_rebalances(
    start_broker: Callable[..., BrokerProcess], topic: str, client: str, how: int
) -> None:
    broker = start_broker(*SETTINGS)
    with play(broker, topic) as scene:
        scene.send()
        members = [scene.member(client, session=20_000) for _ in range(2)]
        scene.wait_shared(*members)
        scene.wait_read()
        before = [one.changes for one in members]
        broker.stop(how)
        broker.start()
        for _ in range(3):
            scene.send()
            scene.wait_read()
            time.sleep(0.5)  # some heartbeats
        assert [one.changes for one in members] == before, scene.explain()
        assert scene.doubles == 0, scene.explain()
        scene.wait_shared(*members)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_static_member_restarts_and_nobody_rebalances(broker: BrokerProcess, topic: str, client: str) -> None:
    with play(broker, topic) as scene:
        scene.send()
        staying = scene.member(client, instance="staying", session=30_000)
        going = scene.member(client, instance="going", session=30_000)
        scene.wait_shared(staying, going)
        scene.wait_read()
        owned, before = going.owned, staying.changes
        going.kill()
        scene.send()
        back = scene.member(client, instance="going", session=30_000)
        scene.wait(lambda: back.owned == owned)
        scene.send()
        scene.wait_read()
        assert staying.changes == before, scene.explain()
        assert scene.doubles == 0, scene.explain()


def test_a_static_member_that_has_been_replaced_is_told_so(broker: BrokerProcess, topic: str) -> None:
    with play(broker, topic) as scene:
        scene.send()
        first = scene.member("confluent", instance="one", session=30_000)
        scene.wait_shared(first)
        second = scene.member("confluent", instance="one", session=30_000)
        scene.wait_shared(second)
        scene.wait(lambda: any("fenced" in line for line in first.errors))
        scene.send()
        scene.wait_read()


@pytest.mark.parametrize("client", CLIENTS)
def test_whoever_comes_later_goes_on_where_the_group_was(broker: BrokerProcess, topic: str, client: str) -> None:
    with play(broker, topic) as scene:
        scene.send()
        first = scene.member(client)
        scene.wait_read()
        first.leave()
        scene.send()
        scene.member(client)
        scene.wait_read()
        assert scene.doubles == 0, scene.explain()
