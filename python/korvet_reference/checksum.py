"""CRC-32C (Castagnoli), the checksum of record batches. Source: RFC 3720, appendix B.4."""

from korvet_reference.varint import Bytes

POLYNOMIAL = 0x82F63B78  # with its bits in reverse, because bytes are taken lowest bit first


def _of_byte(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


TABLE = [_of_byte(byte) for byte in range(256)]


def crc32c(data: Bytes) -> int:
    """The checksum of `data`, as an unsigned 32-bit integer."""
    crc = 0xFFFFFFFF
    for byte in memoryview(data).cast("B"):
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF
