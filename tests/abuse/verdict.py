"""The run of the well-behaved clients as a history, held against what the broker has at the end."""

from pathlib import Path

from abuse.wire import Line
from batches import read_rows
from history import History, Sent
from kafka_server import FETCH, LIST_OFFSETS

_EARLIEST, _LATEST = -2, -1


def check_histories(port: int, file: Path, topics: dict[str, str]) -> int:
    """`topics`: by the name of their producer. Returns how many records were acknowledged; raises `AssertionError`."""
    histories = {name: History() for name in topics}
    for words in map(str.split, file.read_text().splitlines()):
        _note(histories, words)
    total = 0
    with Line(port) as line:
        for name, topic in topics.items():
            start = _offset(line, topic, _EARLIEST)
            log = _read(line, topic, start)
            acknowledged = histories[name].acknowledged
            assert acknowledged, f"nothing was acknowledged of {topic}"
            # Below the start is what an attacker deleted with DeleteRecords, as anybody may.
            known = [*acknowledged.values(), *(place for place, _ in histories[name].read[name])]
            gone = {place for place in known if place[1] < start}
            histories[name].check({0: log}, may_lose=gone)
            newest = max(offset for _, offset in acknowledged.values())
            seen = [place[1] for place, _ in histories[name].read[name]]
            assert seen and seen[-1] >= newest, f"the consumer of {topic} is at {seen[-1:]}, but {newest} is there"
            total += len(acknowledged)
    return total


def _note(histories: dict[str, History], words: list[str]) -> None:
    kind, name = words[0], words[1]
    if kind == "sent":
        histories[name].note_sent(Sent(name, int(words[2])), 0, once=True)
    elif kind == "acked":
        histories[name].note_acknowledged(Sent(name, int(words[2])), (0, int(words[3])))
    elif kind == "read":
        histories[name].note_read(name, (0, int(words[2])), words[3].encode())
    elif kind == "refused":
        assert words[3] not in ("45", "47", "59"), f"an idempotent producer was refused for good: {' '.join(words)}"


def _offset(line: Line, topic: str, time: int) -> int:
    row = {"partition_index": 0, "timestamp": time}
    answer = line.ask(LIST_OFFSETS, 7, replica_id=-1, topics=[{"name": topic, "partitions": [row]}])
    found = answer["topics"][0]["partitions"][0]
    assert found["error_code"] == 0, found
    return int(found["offset"])


def _read(line: Line, topic: str, offset: int) -> list[tuple[int, bytes]]:
    """Everything that consumers may read."""
    end = _offset(line, topic, _LATEST)
    rows: list[tuple[int, bytes]] = []
    while offset < end:
        asked = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        topics = [{"topic": topic, "partitions": [asked]}]
        answer = line.ask(FETCH, 12, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=topics)
        row = answer["responses"][0]["partitions"][0]
        assert row["error_code"] == 0, row
        page = [each for each in read_rows(row["records"]) if each[0] >= offset]
        if not page:
            break  # nothing but a gap below the end
        rows += page
        offset = page[-1][0] + 1
    return rows
