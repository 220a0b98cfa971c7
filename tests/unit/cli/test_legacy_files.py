"""Log directories of Kafka 0.7, written byte by byte as its notes say, and read again."""

from pathlib import Path

import pytest

from korvet_fast.cli.legacy_files import (
    LegacyFilesError,
    LegacyPartition,
    Messages,
    find_partitions,
    measure,
    read_messages,
    write_messages,
)

HELLO = bytes.fromhex("0000000b01003610a68668656c6c6f")
WORLD = bytes.fromhex("0000000b01003a771143776f726c64")
OLD = bytes.fromhex("0000000a003610a68668656c6c6f")
EMPTY = bytes.fromhex("00000006010000000000")


def lay(folder: Path, *segments: tuple[int, bytes]) -> LegacyPartition:
    folder.mkdir(parents=True)
    for base, data in segments:
        (folder / f"{base:020d}.kafka").write_bytes(data)
    (found,) = find_partitions(folder.parent)
    return found


@pytest.mark.parametrize("most", [4, 7, 16, 30, 1000])
def test_messages_come_with_their_positions_from_anywhere(tmp_path: Path, most: int) -> None:
    first, second = HELLO + WORLD + OLD, EMPTY + HELLO
    found = lay(tmp_path / "my-topic-12", (0, first), (len(first), second))
    assert (found.topic, found.partition) == ("my-topic", 12)
    whole = first + second
    for start in (0, 15, 30, 44, 54, 69):
        pieces = list(read_messages(found, start, most))
        assert b"".join(piece.data for piece in pieces) == whole[start:]
        assert [piece.position for piece in pieces] == [start, *(piece.end for piece in pieces)][: len(pieces)]
    assert measure(found) == 69


@pytest.mark.parametrize("tail", [b"\0", HELLO[:9], b"straybyt", HELLO[:-1] + b"x", b"\xff" * 20], ids=repr)
def test_a_torn_tail_is_left_out_of_the_last_segment_only(tmp_path: Path, tail: bytes) -> None:
    found = lay(tmp_path / "a" / "t-0", (0, HELLO), (15, WORLD + tail))
    pieces = list(read_messages(found, 0, 1000))
    assert (pieces[-1].end, measure(found)) == (30, 30 + len(tail))
    torn = lay(tmp_path / "b" / "t-0", (0, HELLO + tail), (15 + len(tail), WORLD))
    with pytest.raises(LegacyFilesError, match="at byte 15"):
        list(read_messages(torn, 0, 1000))


def test_segments_that_do_not_join_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LegacyFilesError, match=r"does not begin where .* ends, at 15"):
        lay(tmp_path / "t-0", (0, HELLO), (16, WORLD))


def test_what_is_written_is_read_again_and_a_piece_is_never_split(tmp_path: Path) -> None:
    pieces = [Messages(position, HELLO + WORLD) for position in range(60, 210, 30)]
    assert list(write_messages(tmp_path / "t-3", pieces, 40)) == [piece.end for piece in pieces]
    (found,) = find_partitions(tmp_path)
    assert [base for base, _ in found.segments] == [60, 120, 180]
    assert b"".join(piece.data for piece in read_messages(found, 0, 1000)) == (HELLO + WORLD) * 5
