"""Any sequence of appends, cuts, drops, saves, crashes and restarts, against plain lists and dicts."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.types import LARGE, SegmentLimits
from store.record_batches import make_record_batch, offsets, read_all

_Result = TypeVar("_Result")

LOGS = st.sampled_from(["a:0", "a-0:0"])
KEYS = st.sampled_from(["x/1", "x/2", "y"])


class Model:
    """The model of a log: its batches as (first, count, time), and where it starts and ends."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, int]] = []
        self.start = 0
        self.end = 0
        self.newest = 0  # of all that was ever appended

    @property
    def offsets(self) -> list[int]:
        """All offsets at rest that a reader from the start gets."""
        return [offset for first, count, _ in self.batches for offset in range(first, first + count)]

    def trim(self) -> None:
        """Forget whole batches below the start."""
        self.batches = [batch for batch in self.batches if batch[0] + batch[1] > self.start]


class StoreMachine(RuleBasedStateMachine):
    """The embedded store with segments of changing sizes and a dense index, so that every border is met often."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="store-machine-"))
        self.loop = asyncio.new_event_loop()
        self.logs: dict[str, Model] = {}
        self.keys: dict[str, bytes] = {}
        self.value = 0
        self.open()

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return self.loop.run_until_complete(work)

    def open(self) -> None:
        self.store = EmbeddedStore(self.directory, index_interval_bytes=100)
        self.run(self.store.open())

    @rule(
        log=LOGS,
        counts=st.lists(st.integers(1, 5), min_size=1, max_size=4),
        time=st.integers(0, 200),
        sync=st.booleans(),
        size=st.sampled_from([20, 20, 200, 3000]),
        segment_limits=st.sampled_from(
            [SegmentLimits(1000, 150), SegmentLimits(1000, 150), SegmentLimits(1, 1), LARGE]
        ),
    )
    def append(
        self, log: str, counts: list[int], time: int, sync: bool, size: int, segment_limits: SegmentLimits
    ) -> None:
        model = self.logs.setdefault(log, Model())
        batches = []
        end = model.end
        for count in counts:
            batches.append(make_record_batch(end, count, time=time, size=size))
            model.batches.append((end, count, time + count - 1))
            model.newest = max(model.newest, time + count - 1)
            end += count

        async def append() -> None:
            await self.store.open_log(log).append(batches, model.end, sync=sync, segment_limits=segment_limits).durable

        self.run(append())
        model.end = end

    @rule(log=LOGS, part=st.floats(0, 1))
    def delete_records(self, log: str, part: float) -> None:
        model = self.logs.get(log)
        if model is not None:
            model.start = max(model.start, int(model.end * part))
            assert self.run(self.store.delete_records(log, int(model.end * part))).start == model.start
            model.trim()

    @rule(log=LOGS, part=st.floats(0, 1))
    def cut_end(self, log: str, part: float) -> None:
        model = self.logs.get(log)
        if model is not None:
            end = model.start + int((model.end - model.start) * part)
            removed = [first for first, count, _ in model.batches if first + count > end]
            model.batches = [batch for batch in model.batches if batch[0] + batch[1] <= end]
            if removed:
                model.end = max(model.start, removed[0])
            assert self.run(self.store.truncate(log, end)).end == model.end

    @rule(log=LOGS, ms=st.integers(0, 250))
    def retire_by_time(self, log: str, ms: int) -> None:
        model = self.logs.get(log)
        if model is not None:
            before = self.run(self.store.bounds(log))
            bounds = self.run(self.store.apply_retention(log, older_than=ms))
            if ms > model.newest and before.durable == before.end:
                assert bounds.start == model.end
            assert all(time < ms for first, count, time in model.batches if first + count <= bounds.start)
            model.start = bounds.start
            model.trim()

    @rule(log=LOGS, size=st.just(0) | st.integers(0, 5000))
    def retire_by_size(self, log: str, size: int) -> None:
        model = self.logs.get(log)
        if model is not None:
            before = self.run(self.store.bounds(log))
            bounds = self.run(self.store.apply_retention(log, larger_than=size))
            assert bounds.size >= min(before.size, size)
            if size == 0 and before.durable == before.end:
                assert bounds.start == model.end
            model.start = bounds.start
            model.trim()

    @rule()
    def close_idle(self) -> None:
        # The first call finds out who uses them; one whose full segments were not flushed has them flushed first.
        for _ in range(2):
            self.run(self.store.close_idle())
        self.run(self.store._flush())
        self.run(self.store.close_idle())
        assert all(log.is_closed for log in self.store._logs.values())

    @rule(log=LOGS)
    def drop(self, log: str) -> None:
        self.run(self.store.drop(log))
        self.logs.pop(log, None)

    @rule(key=KEYS, delete=st.booleans())
    def save(self, key: str, delete: bool) -> None:
        self.value += 1
        value = None if delete else b"%d" % self.value
        assert self.run(self.store.save(key, value, self.keys.get(key)))
        self.keys.pop(key, None)
        if value is not None:
            self.keys[key] = value

    @rule()
    def restart(self) -> None:
        self.run(self.store.close())
        self.open()

    @rule()
    def crash(self) -> None:
        self.store._release()
        self.open()

    @rule(log=LOGS, start=st.integers(0, 60), ms=st.integers(0, 250))
    def look_for_time(self, log: str, start: int, ms: int) -> None:
        batches = self.logs[log].batches if log in self.logs else []
        found = [batch for batch in batches if batch[2] >= ms and batch[0] + batch[1] > start]
        page = self.run(self.store.find_time(log, ms, start))
        assert offsets(page)[:1] == [batch[0] for batch in found[:1]]

    @rule(log=LOGS, start=st.integers(0, 60), max_bytes=st.integers(1, 1000), limit=st.integers(0, 60))
    def read(self, log: str, start: int, max_bytes: int, limit: int) -> None:
        batches = self.logs[log].batches if log in self.logs else []
        page = self.run(self.store.open_log(log).read(start, max_bytes, limit))
        first = next((batch for batch in batches if batch[0] + batch[1] > start), None)
        if start >= limit or first is None or first[0] + first[1] > limit:
            assert page.data == []
        else:
            assert offsets(page)[0] == first[0]
            assert page.next <= limit
            assert sum(map(len, page.data)) <= max_bytes or page.next == first[0] + first[1]

    @invariant()
    def all_is_there(self) -> None:
        for log, model in self.logs.items():
            bounds = self.run(self.store.bounds(log))
            assert (bounds.start, bounds.end, bounds.durable) == (model.start, model.end, model.end)
            assert self.run(read_all(self.store, log)) == model.offsets
        assert self.run(self.store.scan("")) == dict(sorted(self.keys.items()))

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        shutil.rmtree(self.directory)


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
