"""Recovery of a store from the files that a crash, or a person, left."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded import recovery
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.types import LARGE, SegmentLimits
from store.engines import EmbeddedEngine
from store.record_batches import LIMIT, fill, make_record_batch, offsets, read_all, up_to

LOG = "orders:0"
PIECE = len(make_record_batch(0).data)


async def write(
    embedded: EmbeddedEngine, *, count: int, crash: bool = True, segment_limits: SegmentLimits = LARGE, **options: Any
) -> None:
    """A store that held `count` batches of one record each."""
    store = embedded.make(**options)
    await store.open()
    await fill(store, LOG, *[1] * count, sync=True, segment_limits=segment_limits)
    assert await store.save("key", b"value", None)
    if crash:
        embedded.crash(store)
    else:
        await store.close()


async def reopened(embedded: EmbeddedEngine, **options: Any) -> list[int]:
    """The offsets after opening again; the store takes appends, and has its keys."""
    store = embedded.make(**options)
    await store.open()
    found = await read_all(store, LOG)
    end = (await store.bounds(LOG)).end
    assert end == (found[-1] + 1 if found else 0)
    assert (await fill(store, LOG, 2)).end == end + 2
    assert await read_all(store, LOG) == [*found, end, end + 1]
    assert await store.load("key") == b"value"
    await store.close()
    return found


def segments(directory: Path) -> list[Path]:
    return sorted((directory / "orders-0").glob("*.log"))


async def test_torn_tail(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    """The file ends at each of its last 200 bytes: whole batches stay, the torn one goes."""
    await write(embedded, count=5)
    [path] = segments(embedded.directory)
    whole = path.read_bytes()
    for torn in range(200):
        copy = EmbeddedEngine(tmp_path / "copy")
        shutil.copytree(embedded.directory, copy.directory)
        segments(copy.directory)[0].write_bytes(whole[: len(whole) - torn])
        assert await reopened(copy) == list(range(5 - (torn + PIECE - 1) // PIECE))
        shutil.rmtree(copy.directory)


@pytest.mark.parametrize(
    "tail", [bytes(100), bytes(1 << 20), b"\xff" * 500, b"\0\0\0\0\0\0\0\5\0\0\0\x40" + b"x" * 500]
)
async def test_rubbish_behind_the_end(embedded: EmbeddedEngine, tail: bytes) -> None:
    await write(embedded, count=5)
    with segments(embedded.directory)[0].open("ab") as file:
        file.write(tail)
    assert await reopened(embedded) == [0, 1, 2, 3, 4]


async def test_flipped_bit(embedded: EmbeddedEngine, caplog: pytest.LogCaptureFixture) -> None:
    """Everything from the first bad byte on is cut off, and the log says so."""
    await write(embedded, count=5)
    [path] = segments(embedded.directory)
    data = bytearray(path.read_bytes())
    data[3 * PIECE - 5] ^= 1
    path.write_bytes(data)
    assert await reopened(embedded) == [0, 1]
    assert f"{3 * PIECE} bytes cut off behind offset 2" in caplog.text


async def test_what_is_cut_off_the_registry_is_kept(embedded: EmbeddedEngine, caplog: pytest.LogCaptureFixture) -> None:
    """Topics, settings and offsets may be in there: a person can look."""
    store = embedded.make()
    await store.open()
    for number in range(10):
        assert await store.save(f"keys/{number}", b"value %d" % number, None)
    embedded.crash(store)
    (path,) = (embedded.directory / "@registry").glob("*.log")
    data = bytearray(path.read_bytes())
    at = data.index(b"value 6")
    data[at] ^= 1
    path.write_bytes(data)
    store = embedded.make()
    await store.open()
    assert list(await store.scan("keys/")) == [f"keys/{number}" for number in range(6)]
    assert await store.save("keys/6", b"again", None)
    (kept,) = (embedded.directory / "@registry").glob("*.damaged")
    assert data.endswith(kept.read_bytes())
    assert all(b"value %d" % number in kept.read_bytes() for number in range(7, 10))
    assert b"value 5" not in kept.read_bytes()
    (line,) = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert f"is kept in {kept.name}" in line
    await store.close()
    store = embedded.make()
    await store.open()
    assert len(await store.scan("keys/")) == 7
    await store.close()


async def test_a_start_after_an_unclean_end_is_told_in_one_line(
    embedded: EmbeddedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    def told() -> list[str]:
        found = [record.message for record in caplog.records if "was not closed cleanly" in record.message]
        caplog.clear()
        return found

    await write(embedded, count=5)
    assert told() == []
    [path] = segments(embedded.directory)
    with path.open("r+b") as file:
        file.truncate(4 * PIECE + 7)
    size = path.stat().st_size + next((embedded.directory / "@registry").glob("*.log")).stat().st_size
    assert await reopened(embedded) == list(range(4))
    assert told() == [
        f"{embedded.directory} was not closed cleanly: looked at 2 of 2 logs, checked {size} bytes, "
        "cut 7 bytes off 1 of them"
    ]
    assert len(await reopened(embedded)) == 6
    assert told() == []


async def test_hole_between_segments(embedded: EmbeddedEngine) -> None:
    """The segments behind a lost one are removed: a log has no holes."""
    await write(embedded, count=20, segment_limits=up_to(4 * PIECE))
    files = segments(embedded.directory)
    files[2].with_suffix(".index").unlink()
    with files[2].open("r+b") as file:
        file.truncate(3 * PIECE)  # at the border of two batches: every checksum is right
    assert await reopened(embedded) == list(range(11))
    assert len(segments(embedded.directory)) == 3


async def test_large_segment_is_read_in_pieces(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("korvet_fast.store.embedded.segment._CHUNK", 100)  # smaller than a batch
    await write(embedded, count=50)
    assert await reopened(embedded) == list(range(50))


@pytest.mark.parametrize("damage", ["remove", "empty", "cut", "flip head", "flip rows", "other"])
async def test_damaged_index(embedded: EmbeddedEngine, damage: str) -> None:
    """An index that is missing or wrong is built again."""
    options = {"index_interval_bytes": PIECE}
    await write(embedded, count=30, crash=False, segment_limits=up_to(8 * PIECE), **options)
    (embedded.directory / recovery.CHECKPOINT).unlink()
    for path in (embedded.directory / "orders-0").glob("*.index"):
        data = bytearray(path.read_bytes())
        if damage == "remove":
            path.unlink()
            continue
        if damage == "empty":
            data = bytearray()
        elif damage == "cut":
            data = data[:-1]
        elif damage == "flip head":
            data[5] ^= 1
        elif damage == "flip rows":
            data[-1] ^= 1
        else:
            data[8:] = bytes(len(data) - 8)
        path.write_bytes(data)
    store = embedded.make(**options)
    await store.open()
    for offset in range(30):
        assert offsets(await store.open_log(LOG).read(offset, 1, LIMIT)) == [offset]
        assert offsets(await store.find_time(LOG, offset)) == [offset]
    await store.close()
    assert await reopened(embedded, **options) == list(range(30))


async def test_only_the_end_is_checked(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Full segments and what a clean shutdown flushed are not read again."""
    await write(embedded, count=10, crash=False, segment_limits=up_to(4 * PIECE), index_interval_bytes=PIECE)
    store = embedded.make(index_interval_bytes=PIECE)
    await store.open()
    await fill(store, LOG, 1)
    embedded.crash(store)
    read: list[tuple[int, int]] = []
    walk = recovery.Segment.scan.__globals__["walk"]

    def watched(handle: Any, position: int, size: int, *, verify: bool) -> Any:
        read.append((position, size))
        return walk(handle, position, size, verify=verify)

    monkeypatch.setattr("korvet_fast.store.embedded.segment.walk", watched)
    store = embedded.make()
    await store.open()
    monkeypatch.undo()
    assert (2 * PIECE, 3 * PIECE) in read  # the eleventh batch, behind two that the index vouches for
    assert len(read) == 2  # and the registry's
    assert await read_all(store, LOG) == list(range(11))
    await store.close()


async def test_clean_shutdown_is_believed_once(embedded: EmbeddedEngine) -> None:
    await write(embedded, count=5, crash=False)
    checkpoint = embedded.directory / recovery.CHECKPOINT
    assert checkpoint.exists()
    store = embedded.make()
    await store.open()
    assert not checkpoint.exists()
    await store.close()
    assert checkpoint.exists()


async def test_checkpoint_that_does_not_fit(embedded: EmbeddedEngine) -> None:
    """Somebody changed a file between a clean shutdown and the start."""
    await write(embedded, count=5, crash=False)
    [path] = segments(embedded.directory)
    path.write_bytes(path.read_bytes()[:-3])
    assert await reopened(embedded) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"\xff\xff", b"[]", b"3", b"{}", b'{"version": 1}', b'{"version": 1, "logs": 3}'),
        *(b'{"version": 1, "logs": {"orders-0": %s}}' % row for row in (b"3", b"[0]", b"[0, []]", b'[0, [["a"]]]')),
    ],
)
async def test_damaged_checkpoint(embedded: EmbeddedEngine, text: bytes) -> None:
    await write(embedded, count=5, crash=False)
    (embedded.directory / recovery.CHECKPOINT).write_bytes(text)
    assert await reopened(embedded) == [0, 1, 2, 3, 4]


async def test_files_of_others_beside_the_segments(embedded: EmbeddedEngine) -> None:
    await write(embedded, count=5)
    (embedded.directory / "orders-0" / "notes.log").write_text("copied on Monday")
    assert await reopened(embedded) == [0, 1, 2, 3, 4]


async def test_checkpoint_of_a_newer_version(embedded: EmbeddedEngine) -> None:
    await write(embedded, count=5, crash=False)
    (embedded.directory / recovery.CHECKPOINT).write_text('{"version": 99}')
    with pytest.raises(StoreError, match="newer version"):
        await embedded.make().open()


async def test_damaged_start(embedded: EmbeddedEngine) -> None:
    await write(embedded, count=5)
    (embedded.directory / "orders-0" / "start").write_text("many")
    with pytest.raises(StoreError, match="should hold one number"):
        await embedded.make().open()
    (embedded.directory / "orders-0" / "start").write_text("3\n")
    store = embedded.make()  # the failed one let go of the lock
    await store.open()
    assert (await store.bounds(LOG)).start == 3
    await store.close()


async def test_start_behind_what_was_lost(embedded: EmbeddedEngine) -> None:
    """Offsets below the start are never given out again, even if the file behind it is gone."""
    store = embedded.make()
    await store.open()
    await fill(store, LOG, *[1] * 5, sync=True)
    await store.delete_records(LOG, 4)
    embedded.crash(store)
    segments(embedded.directory)[0].write_bytes(b"")
    store = embedded.make()
    await store.open()
    bounds = await store.bounds(LOG)
    assert (bounds.start, bounds.end) == (4, 4)
    await store.close()


async def test_damaged_registry(embedded: EmbeddedEngine) -> None:
    """Keys that cannot be trusted are not guessed at."""
    await write(embedded, count=1, crash=False)
    path = embedded.directory / "@registry" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreError, match="damaged"):
        await embedded.make().open()


async def test_registry_is_compacted(embedded: EmbeddedEngine) -> None:
    store = embedded.make()
    await store.open()
    value = None
    for number in range(1500):
        assert await store.save("key", b"%0100d" % number, value)
        value = b"%0100d" % number
    [path] = (embedded.directory / "@registry").glob("*.log")
    assert path.stat().st_size < 150_000
    embedded.crash(store)
    store = embedded.make()
    await store.open()
    assert await store.scan("") == {"key": value}
    await store.close()


async def test_interrupted_drop(embedded: EmbeddedEngine) -> None:
    await write(embedded, count=5)
    removed = embedded.directory / "@removed"
    removed.mkdir()
    (embedded.directory / "orders-0").rename(removed / "123")
    assert await reopened(embedded) == []
    assert not removed.exists()


async def test_foreign_files_are_left_alone(embedded: EmbeddedEngine) -> None:
    await write(embedded, count=5)
    (embedded.directory / "lost+found").mkdir()
    (embedded.directory / "notes.txt").write_text("mine")
    assert await reopened(embedded) == [0, 1, 2, 3, 4]
    assert (embedded.directory / "lost+found").exists()
    assert (embedded.directory / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["", "a", "a:", ":1", "../a:0", "a/b:0", "a:0:1", "@registry", "a:x", "ä:0", "a" * 250 + ":0"]
)
async def test_names_that_are_none(embedded: EmbeddedEngine, name: str) -> None:
    store: EmbeddedStore = embedded.make()
    await store.open()
    with pytest.raises(ValueError, match="not the name of a log"):
        store.open_log(name).append([make_record_batch(0)], 0, sync=False)
    await store.close()


async def test_a_long_look_is_announced(
    embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await write(embedded, count=5)
    monkeypatch.setattr(recovery, "_MUCH", 5 * PIECE + 1)
    assert await reopened(embedded) == [0, 1, 2, 3, 4]
    assert "read and checked" not in caplog.text
    store = embedded.make()
    await store.open()
    await fill(store, LOG, 1, sync=True)
    embedded.crash(store)
    monkeypatch.setattr(recovery, "_MUCH", PIECE)
    await reopened(embedded)
    assert "orders-0/00000000000000000000.log: not closed cleanly; 0 MB of it are read and checked" in caplog.text


async def test_records_without_the_registry_are_told_of(
    embedded: EmbeddedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    await write(embedded, count=3, crash=False)
    assert "missing or empty" not in caplog.text
    shutil.rmtree(embedded.directory / "@registry")
    store = embedded.make()
    await store.open()
    assert await read_all(store, LOG) == [0, 1, 2]
    await store.close()
    assert "is missing or empty, and logs hold records (1, the first orders:0): stop the broker" in caplog.text
