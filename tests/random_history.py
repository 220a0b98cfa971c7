"""Random good histories, and ways to spoil one in a single place."""

from collections.abc import Callable
from random import Random

from history import History, Sent
from history_example import Log, say


class RandomHistory:
    """What a correct broker does with producers that time out, readers, a failover that loses, and a group."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.history = History()
        self.log: Log = {index: [] for index in range(random.randint(1, 3))}
        self.told: set[tuple[int, int]] = set()
        self.ends = dict.fromkeys(self.log, 0)
        self.positions = dict.fromkeys(self.log, 0)  # the reader's
        self.committed = dict.fromkeys(self.log, 0)
        self.sent = 0
        self.time = 0.0
        self.generation = 0
        for _ in range(random.randint(20, 60)):
            random.choice((self.produce, self.produce, self.produce, self.read, self.commit, self.fail_over))()
        for index in self.log:
            self.produce(index)
        for _ in range(2):  # so that there is something to spoil
            self.read()
            self.commit()

    def produce(self, index: int | None = None) -> None:
        """Stored and acknowledged, with a place or without; or stored or not, and nobody is told; or refused."""
        random, history = self.random, self.history
        partition = random.choice(list(self.log)) if index is None else index
        value = Sent(random.choice(("one", "two", "plain")), self.sent)
        self.sent += 1
        history.note_sent(value, partition, once=value.producer != "plain")
        fate = "told" if index is not None else random.choice(("told", "told", "placeless", "unknown", "gone", "no"))
        if fate == "no":
            history.note_refused(value, "no room")
        if fate in ("no", "gone"):
            return
        offset = self._store(partition, value)
        if value.producer == "plain" and random.random() < 0.3:
            offset = self._store(partition, value)
        if fate != "unknown":
            history.note_acknowledged(value, (partition, -1 if fate == "placeless" else offset))

    def _store(self, partition: int, value: Sent) -> int:
        offset = self.ends[partition] + self.random.choice((0, 0, 3))
        self.ends[partition] = offset + 1
        self.log[partition].append((offset, f"{value.producer}:{value.number}".encode()))
        return offset

    def read(self) -> None:
        for partition, rows in self.log.items():
            for offset, value in rows:
                if offset >= self.positions[partition]:
                    self.history.note_read("reader", (partition, offset), value)
            self.positions[partition] = self.ends[partition]
            self.history.note_high_watermark("reader", partition, self.ends[partition])

    def commit(self) -> None:
        """In a new generation or the same; then somebody asks for it."""
        member, self.time = "reader", self.time + 2
        if not self.generation or self.random.random() < 0.3:
            self.generation += 1
            self.history.note_answer(say("join", self.time - 1, generation=self.generation, leader=member))
        partition = self.random.choice(list(self.log))
        read = [offset + 1 for (where, offset), _ in self.history.read["reader"] if where == partition]
        self.committed[partition] = max([self.committed[partition], *read])
        place = (partition, self.committed[partition])
        seen = self.history.count_read(member)
        self.history.note_commit(member, place, seen, say("commit", self.time, generation=self.generation))
        self.history.note_position(place, say("fetch", self.time + 1))

    def fail_over(self) -> None:
        """The end of one partition is gone; reported is what somebody was told of; offsets go on behind it."""
        partition = self.random.choice(list(self.log))
        start = self.random.randint(0, self.ends[partition])
        claims = [*self.history.acknowledged.values(), *(place for place, _ in self.history.read["reader"])]
        end = max((offset + 1 for where, offset in claims if where == partition), default=0)
        placeless = {value for value, place in self.history.acknowledged.items() if place[1] < 0}
        if any(offset >= start and _sent(value) in placeless for offset, value in self.log[partition]):
            return  # what has no place cannot be reported
        self.log[partition] = [row for row in self.log[partition] if row[0] < start]
        self.told |= {(partition, offset) for offset in range(start, end)}

    def check(self) -> None:
        self.history.check(self.log, may_lose=self.told, never=True)


def _sent(value: bytes) -> Sent:
    producer, number = value.decode().split(":")
    return Sent(producer, int(number))


def _lose(run: RandomHistory) -> None:
    partition = _fullest(run)
    last = run.log[partition][-1][1]
    run.log[partition] = [row for row in run.log[partition] if row[1] != last]


def _read_out_of_nothing(run: RandomHistory) -> None:
    partition = _fullest(run)
    offset, value = run.log[partition][-1]
    run.history.note_read("late", (partition, offset + 1000), value)


def _double(run: RandomHistory) -> None:
    partition = _fullest(run)
    offset, value = run.log[partition][-1]
    run.history.once.add(_sent(value).producer)
    run.log[partition].append((offset + 1000, value))


def _report_too_much(run: RandomHistory) -> None:
    partition = _fullest(run)
    run.told.add((partition, run.log[partition][run.random.randrange(len(run.log[partition]))][0]))


def _move(run: RandomHistory) -> None:
    partition = _fullest(run)
    offset, value = run.log[partition][-1]
    run.log[partition][-1] = (offset + 1000, value)


def _give_a_place_twice(run: RandomHistory) -> None:
    partition = _fullest(run)
    run.history.note_sent(Sent("late", 0), partition, once=False)
    run.log[partition][-1] = (run.log[partition][-1][0], b"late:0")


def _stray(run: RandomHistory) -> None:
    run.log[_fullest(run)].append((10_000, b"nobody:0"))


def _store_what_was_refused(run: RandomHistory) -> None:
    partition = _fullest(run)
    run.history.note_sent(Sent("late", 0), partition, once=False)
    run.history.note_refused(Sent("late", 0), "no room")
    run.log[partition].append((10_000, b"late:0"))


def _answer_twice(run: RandomHistory) -> None:
    value, (partition, offset) = run.random.choice(list(run.history.acknowledged.items()))
    run.history.note_acknowledged(value, (partition, offset + 1))


def _swap(run: RandomHistory) -> None:
    partition = _fullest(run)
    run.log[partition].append(run.log[partition][0])


def _read_again(run: RandomHistory) -> None:
    place, value = run.random.choice(run.history.read["reader"])
    run.history.note_read("reader", place, f"{value.producer}:{value.number}".encode())


def _skip(run: RandomHistory) -> None:
    """Another reader sees the first and the last of a partition, and nothing between."""
    partition = _fullest(run)
    run.produce(partition)
    run.produce(partition)
    for offset, value in (run.log[partition][0], run.log[partition][-1]):
        run.history.note_read("late", (partition, offset), value)


def _lower_the_watermark(run: RandomHistory) -> None:
    mark = max(run.history.marks["reader"], key=lambda each: each.offset)
    lower = next(offset for offset in range(mark.offset - 1, -2, -1) if (mark.partition, offset) not in run.told)
    run.history.note_high_watermark("reader", mark.partition, lower)


def _commit_too_much(run: RandomHistory) -> None:
    partition = run.random.choice(list(run.log))
    answer = say("commit", run.time + 10, generation=run.generation)
    run.history.note_commit("reader", (partition, 10_000), run.history.count_read("reader"), answer)


def _commit_back(run: RandomHistory) -> None:
    last = max(run.history.commits, key=lambda each: each.offset)
    answer = say("commit", run.time + 10, generation=run.generation)
    run.history.note_commit("reader", (last.partition, last.offset - 1), last.seen, answer)


def _forget_a_commit(run: RandomHistory) -> None:
    last = max(run.history.commits, key=lambda each: each.offset)
    run.history.note_position((last.partition, last.offset - 1), say("fetch", run.time + 10))


def _let_an_old_generation_in(run: RandomHistory) -> None:
    run.history.note_answer(say("beat", run.time + 10, generation=run.generation - 1))


def _fullest(run: RandomHistory) -> int:
    return max(run.log, key=lambda partition: len(run.log[partition]))


SPOIL: dict[str, Callable[[RandomHistory], None]] = {
    "lost": _lose,
    "reported and not lost": _report_too_much,
    "vanished": _read_out_of_nothing,
    "doubled": _double,
    "moved": _move,
    "stray": _stray,
    "refused and there": _store_what_was_refused,
    "contradiction": _answer_twice,
    "out of order": _swap,
    "reused": _give_a_place_twice,
    "went back": _read_again,
    "skipped": _skip,
    "high watermark": _lower_the_watermark,
    "commit above delivered": _commit_too_much,
    "commit back": _commit_back,
    "commit lost": _forget_a_commit,
    "not fenced": _let_an_old_generation_in,
}
