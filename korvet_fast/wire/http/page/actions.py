"""The changes that the page makes: create a topic, delete records, reset a group's offsets.

Each is asked for by a form that shows what would happen, and done by a second one that has the token of our forms.
"""

import hmac
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlencode

from korvet_fast.core.acls.binding import Operation, ResourceType
from korvet_fast.core.broker import Broker
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.core.partition.partition import Partition
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.types import LATEST
from korvet_fast.wire.http.exchange import Answer, Exchange, say
from korvet_fast.wire.http.page.access import Need, require
from korvet_fast.wire.http.page.fields import find_topic, read_number
from korvet_fast.wire.http.page.groups import find_group
from korvet_fast.wire.http.page.render import HEADERS, render
from korvet_fast.wire.http.page.show import show_line
from korvet_fast.wire.http.session import Handler, Session

_CREATE: Final = Need(Operation.CREATE, ResourceType.TOPIC)
_MOST_RESET: Final = 10_000  # partitions in one reset
_SHOWN: Final = 200  # of them on the page


class Reset(NamedTuple):
    """What a reset does to a partition. `before` None: nothing was committed."""

    partition: int
    before: int | None
    after: int


def taking_forms(handler: Handler) -> Handler:
    """The handler, for forms of ours that a page of ours sent."""

    async def answer(session: Session, exchange: Exchange) -> Answer:
        return _check_form(session, exchange) or await handler(session, exchange)

    return answer


def _check_form(session: Session, exchange: Exchange) -> Answer | None:
    """Why a form is not taken: it is not one of ours, or came from a page that is not. None: it is taken."""
    if exchange.origin not in ("", f"http://{exchange.authority}", f"https://{exchange.authority}"):
        return say(HTTPStatus.FORBIDDEN, "this form was sent by a page of somebody else")
    given = exchange.form.get("form_token", "")
    if not hmac.compare_digest(given.encode(errors="replace"), session.service.form_token.encode()):
        return say(
            HTTPStatus.FORBIDDEN, "this form is older than the broker's start: go back, load it again, send it again"
        )
    return None


async def show_create_topic(session: Session, exchange: Exchange) -> Answer:
    """`/create-topic`, read: the form."""
    return await _ask_for_topic(session, exchange.query, "", HTTPStatus.OK)


async def create_topic(session: Session, exchange: Exchange) -> Answer:
    """`/create-topic`, posted."""
    form = exchange.form
    name = form.get("name", "").strip()
    try:
        partitions = read_number(form, "partitions", -1) if form.get("partitions", "").strip() else -1
        require(session, exchange, _CREATE, name, by_cluster=True, always=True)
        await session.broker.topics.create(name, partitions, _read_configs(form.get("configs", "")), session.changer)
    except KorvetError as error:
        denied = error.error is Errors.TOPIC_AUTHORIZATION_FAILED
        status = HTTPStatus.FORBIDDEN if denied else HTTPStatus.BAD_REQUEST
        return await _ask_for_topic(session, form, error.detail or error.error.sentence, status)
    return _go_to("/topic", name=name)


async def _ask_for_topic(session: Session, fields: Mapping[str, str], error: str, status: HTTPStatus) -> Answer:
    default = session.broker.settings.number("num.partitions")
    return await render(
        session,
        "create_topic.html",
        session.pace(),
        status=status,
        fields=fields,
        error=error,
        partitions=default,
    )


def _read_configs(text: str) -> dict[str, str | None]:
    configs: dict[str, str | None] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals:
            detail = f"{show_line(line)!r} is no setting: write one a line, as name=value"
            raise KorvetError(Errors.INVALID_CONFIG, detail)
        configs[name.strip()] = value.strip()
    return configs


async def show_delete_records(session: Session, exchange: Exchange) -> Answer:
    """`/delete-records?topic=&partition=`, read: the form; with `offset=` what would be deleted.

    Raises `KorvetError`.
    """
    fields = exchange.query
    partition = _find_partition(session.broker, fields)
    asked = fields.get("offset", "").strip()
    offset = _read_deletion(partition, fields) if asked else None
    return await render(
        session,
        "delete_records.html",
        session.pace(),
        topic=fields["topic"],
        index=partition.index,
        start=partition.log.start,
        end=partition.high_watermark.offset,
        offset=offset,
        counted=not partition.log.entries_layout,
    )


async def delete_records(session: Session, exchange: Exchange) -> Answer:
    """`/delete-records`, posted. Raises `KorvetError`."""
    form = exchange.form
    partition = _find_partition(session.broker, form)
    await partition.delete_records(_read_deletion(partition, form))
    return _go_to("/topic", name=form["topic"])


def _find_partition(broker: Broker, fields: Mapping[str, str]) -> Partition:
    return broker.partition(fields.get("topic", ""), read_number(fields, "partition"))


def _read_deletion(partition: Partition, fields: Mapping[str, str]) -> int:
    offset, start, end = read_number(fields, "offset"), partition.log.start, partition.high_watermark.offset
    if not start <= offset <= end:
        raise KorvetError(Errors.OFFSET_OUT_OF_RANGE, f"offset is {offset}: give one from {start} to {end}")
    return offset


async def show_reset(session: Session, exchange: Exchange) -> Answer:
    """`/reset-offsets?id=&topic=&to=`, read: what would change. Raises `KorvetError`."""
    fields = exchange.query
    plan = await _plan_reset(session, fields)
    names = ("id", "topic", "partition", "to", "offset")
    asked = {name: fields.get(name, "") for name in names}
    pace = session.pace()
    return await render(
        session, "reset_offsets.html", pace, group=fields["id"], fields=asked, plan=plan[:_SHOWN], total=len(plan)
    )


async def reset_offsets(session: Session, exchange: Exchange) -> Answer:
    """`/reset-offsets`, posted. Raises `KorvetError`."""
    form = exchange.form
    plan = await _plan_reset(session, form)
    wanted = {TopicPartition(form["topic"], row.partition): OffsetAndMetadata(row.after) for row in plan}
    errors = await session.broker.groups.offsets.commit(form["id"], "", None, -1, wanted, pace=session.pace())
    if failed := [error for error in errors.values() if error]:
        detail = f"{failed[0].sentence} {len(failed)} of {len(wanted)} offsets are as before."
        raise KorvetError(failed[0], detail)
    return _go_to("/group", id=form["id"])


async def _plan_reset(session: Session, fields: Mapping[str, str]) -> list[Reset]:
    """What the fields ask for. Raises `KorvetError`."""
    broker, pace = session.broker, session.pace()
    runtime, topic = find_group(broker, fields.get("id", "")), find_topic(broker, fields.get("topic", ""))
    if not runtime.group.is_empty:
        raise KorvetError(Errors.NON_EMPTY_GROUP, "the group has members: stop its consumers, then reset its offsets")
    to = fields.get("to", "")
    if to not in ("earliest", "latest", "offset"):
        raise KorvetError(Errors.INVALID_REQUEST, "to is one of earliest, latest, offset")
    wanted = read_number(fields, "offset") if to == "offset" else LATEST
    one = fields.get("partition", "").strip()
    indexes = [read_number(fields, "partition")] if one else list(range(len(topic.partitions)))
    if len(indexes) > _MOST_RESET:
        raise KorvetError(Errors.INVALID_REQUEST, f"{len(indexes)} partitions are too many for the page: name one")
    plan: list[Reset] = []
    for index in indexes:
        partition = broker.partition(topic.name, index)
        start, end = partition.log.start, partition.high_watermark.offset
        committed = runtime.offsets.stored.get(TopicPartition(topic.name, index))
        before = committed.offset if committed is not None and committed.topic_id == topic.id else None
        after = {"earliest": start, "latest": end}.get(to, min(max(wanted, start), end))
        plan.append(Reset(index, before, after))
        if pace.due():
            await pace.turn()
    return plan


def _go_to(path: str, **fields: str) -> Answer:
    """The answer to a form that was taken: a browser that is told to load again then loads this, not the form."""
    return Answer(HTTPStatus.SEE_OTHER, [], headers=(("location", f"{path}?{urlencode(fields)}"), *HEADERS))
