"""`topic describe` and DescribeLogDirs say who leads, who has copies, who is in sync, and what a follower lacks."""

from pathlib import Path

from faults.replication.metrics import until
from faults.replication.trio import Trio


def describe(trio: Trio, topic: str) -> list[str]:
    return trio.run("topic", "describe", topic).splitlines()[0].split("\t")


def test_copies_are_told(tmp_path: Path) -> None:
    with Trio(tmp_path) as trio:
        trio.create("orders", 1)
        leader = int(describe(trio, "orders")[1])
        until(trio, lambda: describe(trio, "orders")[5:] == [_order(leader), "1, 2, 3", ""])
        gone = next(broker for broker in (3, 2) if broker != leader)
        trio.brokers[gone].kill()
        trio.wait_for("orders", lambda one: len(one.isrs) == 2)
        isr = ", ".join(str(broker) for broker in (1, 2, 3) if broker != gone)
        # That it is out of sync and that it is away are heard of one after the other.
        until(trio, lambda: describe(trio, "orders")[6:] == [isr, f"{gone} is away"])
        _, led_by, first, end, *_ = describe(trio, "orders")
        assert (led_by, first, end) == (str(leader), "0", "0")
        trio.start(gone)
        trio.wait_for("orders", lambda one: len(one.isrs) == 3)
        until(trio, lambda: describe(trio, "orders")[6:] == ["1, 2, 3", ""])
        expected = {(0, broker): 0 for broker in (1, 2, 3) if broker != leader}
        while trio.lags("orders") != expected:  # a follower hears how far the leader is with its first answer
            pass
        for named in (2, 3):
            trio.move_registry(named)
            while f"broker {named} leads @registry, the metadata log\n" not in trio.run("cluster", "info"):
                pass  # the broker that is asked has not copied the first record of this leadership yet
        trio.brokers[3].kill()
        trio.away = trio.brokers[3]
        unled = "nobody leads @registry, the metadata log: korvet-fast partition lead @registry 0 --broker "
        while unled not in trio.run_once("cluster", "info").stdout:
            pass


def _order(leader: int) -> str:
    """The replicas: round the brokers, from the leader on."""
    return ", ".join(str((leader - 1 + step) % 3 + 1) for step in range(3))
