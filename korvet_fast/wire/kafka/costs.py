"""The cost of a request, estimated by its own counts before its work starts: bytes of its answer, µs of the loop.

The numbers of a row are measured and rounded up. How a cost grows matters, and the estimate itself must be cheap: a few
rows of anything count as None, for nobody has to wait for them.
"""

from typing import Final

from korvet_fast.wire.kafka.api.describe_topic_partitions import LARGEST_PAGE
from korvet_fast.wire.kafka.session import LITTLE, QUICK, Cost, CostOf, Session, Values

_FEW: Final = 100  # topics looked up to find out how many partitions they have


def _charge(rows: int, answer_bytes: int, micros: int) -> Cost | None:
    if rows * answer_bytes <= LITTLE and rows * micros <= QUICK:
        return None
    return Cost(rows * answer_bytes, rows * micros)


def by_rows(answer_bytes: int, micros: int, array: str, inner: str = "") -> CostOf:
    """A cost for each element of an array of the request, and for each element of the arrays `inner` in them."""

    def cost(session: Session, request: Values) -> Cost | None:
        many = len(request[array] or ())
        return _charge(many, answer_bytes, micros) if many > 1 else None

    def cost_inner(session: Session, request: Values) -> Cost | None:
        rows = request[array] or ()
        many = len(rows)
        for row in rows:
            many += len(row[inner] or ())
        return _charge(many, answer_bytes, micros) if many > 2 else None

    return cost_inner if inner else cost


def of_scram_changes(session: Session, request: Values) -> Cost | None:
    """The credentials that are removed and set."""
    return _charge(len(request["deletions"]) + len(request["upsertions"]), 500, 200)


def of_metadata(session: Session, request: Values) -> Cost | None:
    """Topics that are named, with their partitions. The answer for all topics is kept anyway."""
    asked = request["topics"]
    if not asked:
        return None
    topics = session.broker.topics
    many = len(asked)
    if many > _FEW:
        many += session.broker.settings.number("max.partitions")  # each topic is answered once
    else:
        for row in asked:
            topic = topics.get(row["name"]) or topics.by_id(row["topic_id"])
            if topic is not None:
                many += len(topic.partitions)
    return _charge(many, 60, 4)


def of_topic_partitions(session: Session, request: Values) -> Cost | None:
    """Topics that are named, and the partitions of one page."""
    page = min(request["response_partition_limit"], LARGEST_PAGE, session.broker.topics.partition_count)
    return _charge(len(request["topics"]) + max(page, 0), 60, 8)


def of_config_resources(session: Session, request: Values) -> Cost | None:
    """Kinds that are named, and all topics."""
    return _charge(len(request["resource_types"]) + len(session.broker.topics), 260, 2)


def of_create_topics(session: Session, request: Values) -> Cost | None:
    """Topics with their settings, and the partitions that are made."""
    asked = request["topics"]
    micros = 0 if request["validate_only"] else 50 * sum(max(topic["num_partitions"], 1) for topic in asked)
    micros = min(micros, 50 * session.broker.settings.number("max.partitions"))
    micros += 500 * len(asked) + 2 * sum(len(topic["assignments"]) for topic in asked)
    return Cost(4096 * len(asked), micros)


def of_delete_topics(session: Session, request: Values) -> Cost | None:
    """Topics, which older versions name in another field."""
    return _charge(len(request["topics"]) + len(request["topic_names"]), 500, 500)


def of_consumer_heartbeat(session: Session, request: Values) -> Cost | None:
    """Topics that a member wants to read, and partitions that it has."""
    many = len(request["subscribed_topic_names"] or ())
    for topic in request["topic_partitions"] or ():
        many += 1 + len(topic["partitions"])
    return _charge(many, 50, 5)


def of_offset_fetch(session: Session, request: Values) -> Cost | None:
    """Partitions that are named, or all that groups have committed, each with its text."""
    runtimes = session.broker.groups.partitions.runtimes
    many = texts = 0
    asked = []
    for one in request["groups"] or (request,):
        runtime, topics, rows = runtimes.get(one["group_id"]), one["topics"], 0
        if topics is not None:
            for topic in topics:
                rows += 1 + len(topic["partition_indexes"])
        elif runtime is not None:
            rows = len(runtime.offsets.stored)
        known = runtime.offsets.texts if runtime is not None else 0
        many += rows
        texts += known
        asked.append((topics, rows, known))
    if many * (500 + texts) <= LITTLE and many * 5 <= QUICK:  # a partition that is named again and again
        return None
    longest = session.broker.settings.number("offset.metadata.max.bytes")
    said = sum(
        rows * longest if rows > 2 and topics is not None and _repeats(topics) else min(rows * longest, known)
        for topics, rows, known in asked
    )
    if many * 500 + said <= LITTLE and many * 5 <= QUICK:
        return None
    return Cost(many * 500 + said, many * 5)


def _repeats(topics: list[Values]) -> bool:
    """Whether a partition is named more than once."""
    indexes = [topic["partition_indexes"] for topic in topics]
    return len({topic["name"] for topic in topics}) < len(topics) or any(len(set(one)) < len(one) for one in indexes)


def of_groups(array: str) -> CostOf:
    """Groups that are described, with their members and the members' subscriptions."""

    def cost(session: Session, request: Values) -> Cost | None:
        runtimes, names = session.broker.groups.partitions.runtimes, request[array]
        known = [runtime for name in names[:_FEW] if (runtime := runtimes.get(name)) is not None]
        many = len(names) + sum(len(runtime.group.members) for runtime in known)
        said = sum(runtime.group.memory for runtime in known) if len(names) <= _FEW else runtimes.budget.used
        if many * 4096 + said <= LITTLE and many * 50 <= QUICK:
            return None
        return Cost(many * 4096 + said, many * 50)

    return cost


def of_all_groups(session: Session, request: Values) -> Cost | None:
    """All groups of this broker."""
    return _charge(len(session.broker.groups.partitions.runtimes), 100, 5)


def of_client_quotas(session: Session, request: Values) -> Cost | None:
    """All entities with quotas; the filter only makes the answer shorter."""
    return _charge(len(session.broker.quotas.entities), 300, 5)


def of_log_dirs(session: Session, request: Values) -> Cost | None:
    """Partitions that are named, or all."""
    asked = request["topics"]
    if asked is None:
        many = session.broker.settings.number("max.partitions")
    else:
        many = sum(1 + len(topic["partitions"]) for topic in asked)
    return _charge(many, 40, 3)
