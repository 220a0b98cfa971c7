"""The bench of the codec measures every native call there is."""

from benchmarks.codec.calls import prepare
from korvet_fast import _native

VALUES = {"ArrowColumns", "Batch", "Column", "ReplyError"}  # what calls give back
# Work on a disk, and with memory: calls that do nothing with the bytes.
ELSEWHERE = {"FileMapping", "Flusher", "allocate_small_objects", "give_back_small_objects", "reserve"}


def test_every_native_call_is_measured_and_runs() -> None:
    calls = prepare(3)
    measured = {name.split(" ")[0].split(".")[0] for name in calls}
    assert measured == set(_native.__all__) - VALUES - ELSEWHERE
    methods = {name for kind in (_native.Schema, _native.Frames) for name in vars(kind) if not name.startswith("_")}
    # or next to that: where the next bytes belong
    attributes = {"limit", "name", "pending", "announced", "rest", "advance"}
    assert {name.split(".")[1] for name in calls if "Schema." in name or "Frames." in name} == methods - attributes
    for call in calls.values():
        call(_native)()


def test_replies_of_redis_are_what_the_calls_take_them_for() -> None:
    calls = prepare(7)
    batches, after, seen, skipped = calls["decode_batches"](_native)()  # type: ignore[misc]
    assert (len(batches), after, seen, skipped) == (7, 8, 7, 0)
    _, _, seen, skipped = calls["decode_records"](_native)()  # type: ignore[misc]
    assert (seen, skipped) == (7, 0)
    assert len(calls["parse_reply"](_native)()) == len(calls["parse_replies"](_native)()) == 7  # type: ignore[arg-type]
    assert calls["match_names"](_native)() == ["orders-5"]
