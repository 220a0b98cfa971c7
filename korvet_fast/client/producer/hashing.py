"""The hashes that clients choose partitions with."""

from typing import Final
from zlib import crc32

MASK: Final = 0xFFFF_FFFF
_FNV_BASIS: Final = 0x811C_9DC5
_FNV_PRIME: Final = 0x0100_0193
_MURMUR: Final = 0x5BD1_E995
_MURMUR_SEED: Final = 0x9747_B28C
_SIGN: Final = 0x7FFF_FFFF


def fnv1a(data: bytes) -> int:
    """FNV-1a, 32 bits, as Go's hash/fnv."""
    number = _FNV_BASIS
    for byte in data:
        number = (number ^ byte) * _FNV_PRIME & MASK
    return number


def murmur2(data: bytes) -> int:
    """Kafka's murmur2 (org.apache.kafka.common.utils.Utils.murmur2), as an unsigned number of 32 bits."""
    number = _MURMUR_SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MURMUR & MASK
        word = (word ^ word >> 24) * _MURMUR & MASK
        number = (number * _MURMUR & MASK) ^ word
    if whole < len(data):
        number = (number ^ int.from_bytes(data[whole:], "little")) * _MURMUR & MASK
    number = (number ^ number >> 13) * _MURMUR & MASK
    return number ^ number >> 15


def sarama_hash(key: bytes, partitions: int) -> int:
    """Sarama's NewHashPartitioner: FNV-1a as a signed number, the remainder as Go has it, then its absolute value."""
    number = fnv1a(key)
    return (number if number <= _SIGN else (1 << 32) - number) % partitions


def sarama_reference_hash(key: bytes, partitions: int) -> int:
    """Sarama's NewReferenceHashPartitioner: FNV-1a without its sign bit."""
    return (fnv1a(key) & _SIGN) % partitions


def crc_hash(key: bytes, partitions: int) -> int:
    """Sarama's NewConsistentCRCHashPartitioner and librdkafka's consistent."""
    return crc32(key) % partitions


def murmur2_hash(key: bytes, partitions: int) -> int:
    """Java's default for keys, Sarama's NewMurmur2Partitioner, librdkafka's murmur2."""
    return (murmur2(key) & _SIGN) % partitions
