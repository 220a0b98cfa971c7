"""The choice of each partition's leader: the same on every broker that knows of the same brokers. Pure.

Rendezvous hashing: each partition has its own order of preference among all ids, and takes the first who is there; so
little moves when a broker comes or goes. Nobody gets more than an even share of a topic, rounded up: without that, one
of three brokers often has two partitions of three.
"""

from collections.abc import Sequence

_WORD = (1 << 64) - 1


def assign(topic: bytes, partitions: int, brokers: Sequence[int]) -> list[int]:
    """The leader's id for each partition of the topic with this id (16 random bytes). `brokers` is not empty.

    All brokers of a cluster must come to the same result: another rule is another version of the cluster.
    """
    if len(brokers) == 1:
        return [brokers[0]] * partitions
    seed = int.from_bytes(topic[:8], "big")
    room = dict.fromkeys(brokers, -(-partitions // len(brokers)))
    leaders = []
    for index in range(partitions):
        place = _mix(seed ^ index)
        leader = max((_mix(place ^ identity), identity) for identity, left in room.items() if left)[1]
        room[leader] -= 1
        leaders.append(leader)
    return leaders


def _mix(number: int) -> int:
    """Spread 64 bits: the finalizer of SplitMix64 (Steele, Lea, Flood 2014)."""
    number = (number + 0x9E3779B97F4A7C15) & _WORD
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _WORD
    return number ^ (number >> 31)
