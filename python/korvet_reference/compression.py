"""The four compressions of record batches and message sets, bounded in what they give.

zstd is the one that has no plain Python here: `zstandard` binds the original library.
"""

import zlib

import zstandard

from korvet_fast.errors import CodecError
from korvet_reference import lz4, snappy
from korvet_reference.varint import Bytes

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
GZIP_WINDOW = 31  # zlib's word for a gzip header around a window of 32 KiB
ZSTD_WINDOW = 1 << 27  # what Kafka's Java library takes, and zstd's own default
ZSTD_PIECE = 64  # compressed bytes at a time, so that the bound is looked at before much memory is used


def check_known(number: int) -> None:
    """Raises UNKNOWN_COMPRESSION unless `number` is one of the five."""
    if not NONE <= number <= ZSTD:
        raise CodecError("UNKNOWN_COMPRESSION", f"no compression has the number {number}")


def decompress(compression: int, data: Bytes, limit: int) -> bytes:
    """`data` decompressed, at most `limit` bytes.

    Raises DECOMPRESSION_LIMIT, CORRUPT_COMPRESSION.
    """
    if len(data) == 0:
        raise CodecError("CORRUPT_COMPRESSION", "no compressed bytes at all")
    try:
        match compression:
            case 1:
                return _gunzip(bytes(data), limit)
            case 2:
                return snappy.decompress(data, limit)
            case 3:
                return lz4.decompress(data, limit)
            case _:
                return _unzstd(bytes(data), limit)
    except CodecError as error:
        if error.code == "DECOMPRESSION_LIMIT":
            raise
        raise CodecError("CORRUPT_COMPRESSION", str(error)) from error
    except (zlib.error, zstandard.ZstdError) as error:
        raise CodecError("CORRUPT_COMPRESSION", str(error)) from error


def compress(compression: int, data: Bytes) -> bytes:
    """`data` in a form that every reader of that compression takes; not always a small one."""
    match compression:
        case 0:
            return bytes(data)
        case 1:
            return zlib.compress(data, wbits=GZIP_WINDOW)
        case 2:
            return snappy.compress(data)
        case 3:
            return lz4.compress(data)
        case _:
            return zstandard.ZstdCompressor().compress(data)


def _gunzip(data: bytes, most: int) -> bytes:
    """Members one after another."""
    out = b""
    while data:
        member = zlib.decompressobj(wbits=GZIP_WINDOW)
        out += member.decompress(data, most + 1 - len(out))
        if len(out) > most:
            raise CodecError("DECOMPRESSION_LIMIT", f"more than {most} bytes of gzip")
        if not member.eof:
            raise CodecError("CORRUPT_COMPRESSION", "a gzip member ends early")
        data = member.unused_data
    return out


def _unzstd(data: bytes, most: int) -> bytes:
    """Frames one after another. A size that a frame announces is believed if it is too large, and held against it."""
    out = bytearray()
    while data:
        announced = zstandard.frame_content_size(data)  # -1: it does not say
        if len(out) + announced > most:
            raise CodecError("DECOMPRESSION_LIMIT", f"more than {most} bytes of zstd")
        if zstandard.get_frame_parameters(data).window_size > ZSTD_WINDOW:
            raise CodecError("CORRUPT_COMPRESSION", "the window of a zstd frame is too large")
        end = len(out) + announced if announced >= 0 else most
        frame = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()
        at = 0
        while not frame.eof:
            if at >= len(data):
                raise CodecError("CORRUPT_COMPRESSION", "a zstd frame ends early")
            out += frame.decompress(data[at : at + ZSTD_PIECE])
            at += ZSTD_PIECE
            if len(out) > end:
                if announced >= 0:
                    raise CodecError("CORRUPT_COMPRESSION", "a zstd frame gives more than it announces")
                raise CodecError("DECOMPRESSION_LIMIT", f"more than {most} bytes of zstd")
        if announced >= 0 and len(out) < end:
            raise CodecError("CORRUPT_COMPRESSION", "a zstd frame gives less than it announces")
        data = frame.unused_data + data[at:]
    return bytes(out)
