"""COMMIT and OFFSET: how far a group is. Kafka's clients and tools see the same committed offsets."""

from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.errors import KorvetError
from korvet_fast.wire.text.api.groups import check
from korvet_fast.wire.text.arguments import Arguments
from korvet_fast.wire.text.session import Payload, Session


async def commit(session: Session, arguments: Arguments) -> Payload:
    groups = session.broker.groups
    group = str(arguments["group"])
    check(groups.text.check(group))
    partition = TopicPartition(str(arguments["topic"]), int(arguments["partition"]))
    committed = {partition: OffsetAndMetadata(int(arguments["offset"]))}
    consumer, generation = str(arguments["consumer"]), int(arguments["generation"])
    errors = await groups.offsets.commit(group, consumer, None, generation, committed)
    if error := errors[partition]:
        raise KorvetError(error)
    return [b"committed=true"]


async def offset(session: Session, arguments: Arguments) -> Payload:
    partition = TopicPartition(str(arguments["topic"]), int(arguments["partition"]))
    error, found = await session.broker.groups.offsets.fetch(str(arguments["group"]), [partition])
    if error:
        raise KorvetError(error)
    committed = found.get(partition)
    return [f"offset={-1 if committed is None else committed.offset}".encode()]
