"""PRODUCE: a run of lines is appended with one batch for each partition, and answered together."""

from typing import Final

from korvet_fast._native import ProduceRun
from korvet_fast.core.acls.binding import Operation, ResourceType
from korvet_fast.core.produce import service
from korvet_fast.core.produce.acks import Outcome
from korvet_fast.core.produce.service import Batch
from korvet_fast.core.topics.topic import Topic
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.text.api.topics import find_topic
from korvet_fast.wire.text.errors import STORAGE_ERROR, translate
from korvet_fast.wire.text.session import Session

_ALL, _LEADER = -1, 1  # acks
_ALL_MS: Final = 2_000  # how long acks=all waits
_LEADER_MS: Final = 30_000
_MOST_TURNS: Final = 10_000  # topics whose turn of records without a key is remembered
_UNKNOWN_OUTCOME: Final = f"{STORAGE_ERROR}|it is not known whether the record was stored"


async def produce(session: Session, frame: bytearray, *, guarded: bool = False) -> Reply:
    """`guarded`: there is an authorizer, so each topic needs WRITE."""
    run = ProduceRun(frame)
    names = run.topics
    topics: list[Topic | None] = list(map(session.broker.topics.get, names))
    if guarded:
        write = Operation.WRITE
        allowed = [session.authorize("PRODUCE", write, ResourceType.TOPIC, name) for name in names]
        topics = [topic if good else None for topic, good in zip(topics, allowed, strict=True)]
    if None not in topics:
        async with session.order.beside():
            return [await _append(session, run, names, topics, [""] * len(names))]
    async with session.order.alone():
        refused = [""] * len(names)
        for number, name in enumerate(names):
            try:
                if guarded and not allowed[number]:
                    raise KorvetError(Errors.TOPIC_AUTHORIZATION_FAILED)
                topics[number] = await find_topic(session, name, create=True)
            except KorvetError as error:
                topics[number], refused[number] = None, _write(error.error)
        return [await _append(session, run, names, topics, refused)]


async def _append(
    session: Session, run: ProduceRun, names: list[str], topics: list[Topic | None], refused: list[str]
) -> bytes:
    turns = session.service.turns
    plans = [
        (0, 0, 0) if topic is None else (len(topic.partitions), turns.get(name, 0), topic.config.max_message_bytes)
        for name, topic in zip(names, topics, strict=True)
    ]
    built, after = run.build(plans, session.broker.now())
    if len(turns) > _MOST_TURNS:
        turns.clear()  # a topic whose turn is forgotten begins with partition 0 again
    turns.update((name, turn) for name, turn, plan in zip(names, after, plans, strict=True) if turn != plan[1])
    acks, timeout_ms = (_ALL, _ALL_MS) if run.all else (_LEADER, _LEADER_MS)
    outcomes: list[Outcome]
    if len(built) == 1:
        ((number, index, records),) = built
        outcome = service.produce_one(session, names[number], {"index": index, "records": records}, acks, timeout_ms)
        outcomes = [outcome if isinstance(outcome, tuple) else await outcome]
    elif built:
        outcomes = await _append_many(session, names, built, acks, timeout_ms)
    else:
        outcomes = []
    told = [_tell(topics[one[0]], acks, outcome) for one, outcome in zip(built, outcomes, strict=True)]
    return run.answer(told, refused)


async def _append_many(
    session: Session, names: list[str], built: list[tuple[int, int, bytearray]], acks: int, timeout_ms: int
) -> list[Outcome]:
    """The outcomes, in the order of `built`. Batches of one partition keep their order."""
    rows: list[list[Batch]] = [[] for _ in names]
    for number, index, records in built:
        rows[number].append({"index": index, "records": records})
    results, _ = await service.produce(session, list(zip(names, rows, strict=True)), acks, timeout_ms)
    each = [iter(outcomes) for outcomes in results]
    return [next(each[number]) for number, _, _ in built]


def _tell(topic: Topic | None, acks: int, outcome: Outcome) -> tuple[str, int, int]:
    """An outcome as `ProduceRun.answer` takes it."""
    index, error, base, *_ = outcome
    assert topic is not None  # nothing was built for it else
    if not error:
        return "", base, topic.partitions[index].told_high_watermark
    late = error.error == Errors.REQUEST_TIMED_OUT and acks != _ALL
    return _UNKNOWN_OUTCOME if late else _write(error.error), 0, 0


def _write(error: Errors) -> str:
    return "|".join(translate(error))
