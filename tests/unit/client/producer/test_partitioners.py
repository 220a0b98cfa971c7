"""The partition of a key is that of the clients it is named after: golden values, and Kafka's own test vectors."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from korvet_fast.client.producer.hashing import murmur2
from korvet_fast.client.producer.partitioners import PARTITIONERS, Partitioner, StickyPartitioner

# key -> the partition of 12 by Sarama's Hash, ReferenceHash and ConsistentCRCHash, and by Java's murmur2.
GOLDEN = {
    b"": (3, 5, 0, 9),
    b"a": (0, 8, 3, 4),
    b"foo": (1, 7, 5, 8),
    b"key-1": (10, 10, 2, 0),
    b"\xff\x00": (2, 2, 9, 7),
    b"order:42": (5, 5, 11, 8),
}
NAMES = ("hash", "reference_hash", "crc32", "murmur2")

# org.apache.kafka.common.utils.UtilsTest.testMurmur2, as signed numbers.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


class Topic:
    def __init__(self, count: int, missing: Sequence[int] = (), queued: dict[int, int] | None = None) -> None:
        self.count = count
        self.missing = set(missing)
        self.queued = queued or {}

    def is_available(self, index: int) -> bool:
        return index not in self.missing

    def available(self) -> Sequence[int]:
        return [index for index in range(self.count) if index not in self.missing]

    def queued_bytes(self, index: int) -> int:
        return self.queued.get(index, 0)


def make(name: str, stick: int = 1000, adaptive: bool = True, ignore_keys: bool = False) -> Partitioner:
    random = Random(1)
    return Partitioner(name, ignore_keys, StickyPartitioner(stick, adaptive, random), random)


@pytest.mark.parametrize(("name", "place"), [(name, place) for place, name in enumerate(NAMES)])
@pytest.mark.parametrize("key", GOLDEN)
def test_golden(name: str, place: int, key: bytes) -> None:
    assert make(name).choose(key, 1, Topic(12)) == GOLDEN[key][place]


@pytest.mark.parametrize("key", JAVA)
def test_murmur2_is_javas(key: bytes) -> None:
    assert murmur2(key) == JAVA[key] & 0xFFFF_FFFF


@pytest.mark.parametrize("name", PARTITIONERS)
def test_without_a_key_only_what_is_available_is_used(name: str) -> None:
    partitioner = make(name)
    used = Counter(partitioner.choose(None, 500, Topic(4, missing=[2])) for _ in range(400))
    assert set(used) == {0, 1, 3}


def test_round_robin_takes_turns() -> None:
    partitioner = make("round_robin")
    assert [partitioner.choose(b"key", 1, Topic(3)) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_sticky_stays_for_so_many_bytes_whatever_the_sizes() -> None:
    partitioner = make("murmur2", stick=1000, adaptive=False)
    taken: Counter[int] = Counter()
    random = Random(2)
    changes = 0
    before = -1
    for _ in range(20_000):
        size = random.choice([10, 100, 400])
        chosen = partitioner.choose(None, size, Topic(4))
        taken[chosen] += size
        changes += chosen != before
        before = chosen
    assert max(taken.values()) < 1.2 * min(taken.values())
    assert changes < 20_000 * 170 / 1000


def test_sticky_prefers_where_less_waits() -> None:
    """The queue's length is the weight (KIP-794): a slow broker gets less."""
    partitioner = make("murmur2", stick=1000)
    topic = Topic(2, queued={0: 9000})
    used = Counter(partitioner.choose(None, 1000, topic) for _ in range(2000))
    assert used[1] > 5 * used[0] > 0


def test_a_lost_leader_ends_the_stay() -> None:
    partitioner = make("murmur2", stick=1 << 30)
    first = partitioner.choose(None, 1, Topic(3))
    assert partitioner.choose(None, 1, Topic(3, missing=[first])) != first


def test_keys_may_be_ignored() -> None:
    partitioner = make("murmur2", ignore_keys=True)
    assert {partitioner.choose(b"same", 1000, Topic(4)) for _ in range(99)} == {0, 1, 2, 3}
