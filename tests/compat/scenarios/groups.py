"""Members of a group: they come, go, die and return, and so does the broker; nothing is left unread."""

import signal
from collections.abc import Callable, Sequence
from typing import Any

from compat.group_scene import Scene, play
from compat.world import Stage
from member_history import check_members

# Clients that join again by themselves when their only broker is away, at whatever broker: they may rebalance then.
REJOIN = {
    "java_41": "begins again from its bootstrap addresses (KIP-899) and forgets the topic for a moment",
    "sarama": "gives its session up after some refused connections, which it tries without a pause",
    "franz_go": "looks for another broker than the one that refused, and there is none",
    "kafkajs": "starts its consumer anew, as another member",
}

# Clients whose group.protocol=consumer is a preview, in which a partition may be begun anew although it was committed.
PREVIEW = {"java_39": "a preview there: may read again what was committed when a partition moves (KAFKA-17674)"}

EXPIRES = 6000  # ms of session, where a member shall be missed; longer than a busy machine lets a living one wait
STAYS = 30_000


def three_members(**options: Any) -> Callable[[Stage], None]:
    """Two members, a third that comes late, one that leaves and one that is killed."""

    def play_three(stage: Stage) -> None:
        with play(stage.world.broker, stage.topic) as scene:
            come_and_go(scene, [stage.name] * 3, **options)

    return play_three


def two_languages(strategy: str) -> Callable[[Stage], None]:
    """The same with a client of another language between."""

    def play_mixed(stage: Stage) -> None:
        with play(stage.world.broker, stage.topic) as scene:
            come_and_go(scene, [stage.name, stage.other_name, stage.name], strategy=strategy)

    return play_mixed


def come_and_go(scene: Scene, clients: Sequence[str], **options: Any) -> None:
    options = {"session": EXPIRES} | options
    scene.send()
    first, second = (scene.member(client, **options) for client in clients[:2])
    scene.wait_shared(first, second)
    scene.send()
    third = scene.member(clients[2], **options)
    scene.wait_shared(first, second, third)
    scene.send()
    scene.wait_read()
    # Nobody died: what was handed over had been committed, unless its reader came too late for that.
    preview = options.get("protocol") == "consumer" and not PREVIEW.keys().isdisjoint(clients)
    assert preview or scene.unexplained == 0, scene.explain()
    first.leave()
    scene.wait_shared(second, third)
    scene.send()
    second.kill()
    scene.wait_shared(third)
    scene.send()
    scene.wait_read()
    if not preview:
        check_members(scene)


def static_restart(stage: Stage) -> None:
    """A static member is killed and comes back within its session: nobody rebalances."""
    with play(stage.world.broker, stage.topic) as scene:
        scene.send()
        staying = scene.member(stage.name, instance="staying", session=STAYS)
        going = scene.member(stage.name, instance="going", session=STAYS)
        scene.wait_shared(staying, going)
        scene.wait_read()
        owned, before = going.owned, staying.changes
        going.kill()
        scene.send()
        back = scene.member(stage.name, instance="going", session=STAYS)
        scene.wait(lambda: back.owned == owned)
        scene.send()
        scene.wait_read()
        assert staying.changes == before, scene.explain()
        assert scene.doubles == 0, scene.explain()
        check_members(scene)


def resume(stage: Stage) -> None:
    """Whoever comes later goes on where the group was."""
    with play(stage.world.broker, stage.topic) as scene:
        scene.send()
        first = scene.member(stage.name)
        scene.wait_read()
        first.leave()
        scene.send()
        scene.member(stage.name)
        scene.wait_read()
        assert scene.doubles == 0, scene.explain()
        check_members(scene)


def broker_restart(stage: Stage) -> None:
    """The broker is killed, and later stopped, under a group, and starts again: it asks nobody to rebalance."""
    world = stage.fresh()
    with play(world.broker, stage.topic) as scene:
        scene.send()
        session = EXPIRES if stage.name in REJOIN else STAYS  # whoever joins as another leaves a member behind
        members = [scene.member(stage.name, session=session) for _ in range(2)]
        scene.wait_shared(*members)
        scene.wait_read()
        before = [one.changes for one in members]
        for how in (signal.SIGKILL, signal.SIGTERM):
            world.broker.stop(how)
            world.broker.start()
            for _ in range(3):  # the later ones find clients that have beaten again
                scene.send()
                scene.wait_read()
        if stage.name not in REJOIN:
            assert [one.changes for one in members] == before, scene.explain()
            assert scene.doubles == 0, scene.explain()
        scene.wait_shared(*members)
        check_members(scene, expired=members if stage.name in REJOIN else ())
