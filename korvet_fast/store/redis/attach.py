"""Taking a log over for writing."""

from collections import OrderedDict

from korvet_fast._native import pack, reply
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import Attached, Form
from korvet_fast.store.redis.calls import Calls
from korvet_fast.store.redis.ids import LAST
from korvet_fast.store.redis.log import HEAD, Log, Marks
from korvet_fast.store.redis.scripts import ATTACH, SET
from korvet_fast.store.redis.state import State, read_state, write_epochs
from korvet_fast.store.redis.survey import learn

_REMEMBERED = 1000  # epochs


async def attach(calls: Calls, marks: Marks, log: Log, epoch: int, floor: int) -> Attached:
    """See `Store.attach`; nothing of ours is under way. Raises `StoreError`."""
    log.fence = ""
    keys = (log.key, log.state_key)
    fence = marks.make()
    answer = await calls.run(ATTACH, keys, name_form(log.form), fence, epoch)
    if isinstance(answer, bytes):
        raise StoreError(f"{log.name} is laid out as {answer.decode()}, not as {name_form(log.form)}")
    state = read_state(answer, log.form)
    heads = await _read_heads(calls, log) if log.form.single else OrderedDict()
    end = min(max(state.end, floor, log.reach), LAST)
    words: list[str | int] = ["end", end]
    if end > state.top:
        words += ["jump", end, "top", state.top]
    epochs = _continue(state, end) if log.form.single else []
    if epochs:
        words += ["epochs", write_epochs(epochs)]
    if not await calls.run(SET, keys, fence, *words):
        raise StoreError(f"{log.name}: another program took it over at the same time")
    log.fence = fence
    log.epochs = epochs
    log.end = end
    log.mark = b"%d" % end
    log.durable = 0
    log.totals = state.totals
    log.heads = heads
    log.pieces.clear()
    log.first = None
    log.foreign = state.foreign
    bounds = await learn(calls, log, state._replace(end=end))
    return Attached(bounds, state.epoch, state.top, _join(heads), tuple(epochs))


def name_form(form: Form) -> str:
    """As the state has it."""
    return f"{'entries' if form.single else 'batches'}:{form.bits}"


def _continue(state: State, end: int) -> list[tuple[int, int]]:
    """The epochs, with the present one from `end` on; without those that have nothing in the log, or wrote nothing."""
    epochs = [each for each in state.epochs if each[1] < end]
    gone = sum(first <= state.start for _, first in epochs[1:])
    return [*epochs[gone:][-_REMEMBERED:], (state.epoch, end)]


async def _read_heads(calls: Calls, log: Log) -> "OrderedDict[int, bytes]":
    """Of every idempotent producer; who wrote last comes last."""
    (raw,) = await calls.ask(log.key, pack([["HGETALL", log.state_key]]))
    row = reply(raw)
    found = [(int(name[1:]), heads) for name, heads in zip(row[::2], row[1::2], strict=True) if name[1:].isdigit()]
    return OrderedDict(sorted(found, key=lambda each: each[1][-HEAD:][:8]))


def _join(heads: "OrderedDict[int, bytes]") -> bytes:
    each = [found[at : at + HEAD] for found in heads.values() for at in range(0, len(found), HEAD)]
    each.sort(key=lambda head: head[:8])  # base offsets are not negative: their bytes are in their order
    return b"".join(each)
