"""A good history that has something of everything, and small ways to write one."""

from collections.abc import Iterable

from group_history import Answer
from history import History, Sent

Log = dict[int, list[tuple[int, bytes]]]
GONE = [(1, offset) for offset in range(31, 41)]  # what the broker reported as lost


def write(
    history: History, log: Log, names: Iterable[str], partition: int, start: int, *, once: bool, step: int = 10
) -> None:
    """Sent, acknowledged, there, and read by `reader`, at every tenth offset."""
    for number, name in enumerate(names):
        producer, count = name.split(":")
        place = (partition, start + step * number)
        history.note_sent(Sent(producer, int(count)), partition, once=once)
        history.note_acknowledged(Sent(producer, int(count)), place)
        log.setdefault(partition, []).append((place[1], name.encode()))
        history.note_read("reader", place, name.encode())


def say(kind: str, at: float, *, group: str = "g", member: str = "", **more: int | str) -> Answer:
    """A coordinator's answer that took half a second."""
    return Answer(group, "", kind, at, at + 0.5, member=member, **more)  # type: ignore[arg-type]


def commit(history: History, member: str, place: tuple[int, int], at: float, generation: int, error: str = "") -> None:
    """By a member that has read what `note_read` has of it so far."""
    answer = say("commit", at, generation=generation, error=error)
    history.note_commit(member, place, history.count_read(member), answer)


def make() -> tuple[History, Log]:
    """Two partitions, two idempotent producers and a plain one, a reader, a group whose member was replaced.

    Partition 1 had a failover: 31 to 40 were reported as lost; b:4 was acknowledged there, read, and is gone.
    """
    history, log = History(), {}
    write(history, log, [f"a:{number}" for number in range(5)], 0, 0, once=True)
    history.note_high_watermark("reader", 0, 41)
    write(history, log, [f"b:{number}" for number in range(5)], 1, 0, once=True)
    history.note_high_watermark("reader", 1, 41)
    del log[1][4]
    history.note_high_watermark("reader", 1, 31)  # as what was above it is gone
    write(history, log, [f"plain:{number}" for number in range(3)], 1, 100, once=False)
    log[1].append((130, b"plain:2"))  # sent again: it was not told
    history.note_read("reader", (1, 130), b"plain:2")
    history.note_sent(Sent("b", 5), 1, once=True)
    history.note_acknowledged(Sent("b", 5), (1, -1))  # stored long before: the answer named no offset
    log[1].append((140, b"b:5"))
    history.note_read("reader", (1, 140), b"b:5")
    history.note_high_watermark("reader", 1, 141)
    history.note_sent(Sent("plain", 3), 0, once=False)
    history.note_refused(Sent("plain", 3), "no room")
    history.note_sent(Sent("plain", 4), 0, once=False)  # nobody knows
    history.note_answer(say("join", 1, generation=1, leader="first"))
    for number in range(3):
        history.note_read("first", (0, number * 10), b"a:%d" % number)
    commit(history, "first", (0, 21), 2, 1)
    history.note_position((0, 21), say("fetch", 3))
    history.note_answer(say("join", 4, generation=2, leader="second"))
    history.note_read("second", (0, 30), b"a:3")
    commit(history, "second", (0, 21), 5, 2)  # where it began
    commit(history, "second", (0, 31), 6, 2)
    commit(history, "first", (0, 30), 7, 1, error="ILLEGAL_GENERATION")
    history.note_position((0, 31), say("fetch", 8))
    return history, log
