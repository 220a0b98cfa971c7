"""Puts the table of rights in front of the handlers. Without an authorizer there is nothing in front of them.

A request of which all is allowed goes on as it came: one look-up for each resource that it names. Where some rows are
refused, the handler gets the others, and the refused ones are put behind its answer, as Kafka does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from korvet_fast.core.acls.binding import CLUSTER_NAME
from korvet_fast.errors import KorvetError
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.kafka.access import ENOUGH, INSTEAD, Access, Each, Handled, RowShape, Whole
from korvet_fast.wire.kafka.errors import number, translate
from korvet_fast.wire.kafka.rights import CLUSTER_ACTION, has, sees
from korvet_fast.wire.kafka.session import Answer, Handler, Route, Session, Values
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.produce import PRODUCE


def guard_routes(
    routes: Mapping[int, Route], access: Mapping[int, Sequence[Access]], *, logs_allowed: bool = False
) -> dict[int, Route]:
    """The routes, each behind the rights that it needs. `logs_allowed`: an audit log has what is allowed, too.

    Raises `KeyError` for a route that the table does not have.
    """
    return {
        key: replace(route, handler=_guard(route, access[key], logs_allowed=logs_allowed))
        for key, route in routes.items()
    }


def _guard(route: Route, access: Sequence[Access], *, logs_allowed: bool) -> Handler:
    handler = route.handler
    for one in reversed(access):  # the first is the outermost, and is asked first
        if isinstance(one, Whole):
            handler = _guard_whole(route, handler, one)
        elif isinstance(one, Each):
            handler = _guard_each(route, handler, one, logs_allowed=logs_allowed)
        else:
            assert isinstance(one, Handled)
    return handler


def _guard_whole(route: Route, handler: Handler, access: Whole) -> Handler:
    api, right, field, rows = route.message, access.right, access.field, access.rows
    fields = {one.name for one in route.message.response_shape.fields}
    code, sentence = translate(KorvetError(right.error))
    error = {name: value for name, value in (("error_code", code), ("error_message", sentence)) if name in fields}

    async def refuse(session: Session, request: Values) -> Values:
        if rows is None:
            return dict(error)
        pace = session.pace()
        return error | {rows.told: await pace.map(lambda row: _refuse_row(rows, row, code), request[rows.asked] or ())}

    def guarded(session: Session, request: Values, version: int) -> Any:
        if has(session, api, right, request[field] if field else CLUSTER_NAME):
            return handler(session, request, version)
        return refuse(session, request)

    return guarded


def _guard_each(route: Route, handler: Handler, access: Each, *, logs_allowed: bool) -> Handler:
    api, right, asked, name = route.message, access.right, access.rows.asked, access.rows.name
    resource, operation = int(right.resource), 1 << right.operation  # plain numbers take fewer instructions

    instead = access.action == INSTEAD

    def guarded(session: Session, request: Values, version: int) -> Any:
        if instead and request["replica_id"] >= 0:
            if has(session, api, CLUSTER_ACTION):
                return handler(session, request, version)
            return _answer_some(session, request, version, api, handler, access, none=True)
        permissions = session.permissions or session.find_permissions()  # saves a call for each request
        assert permissions is not None  # this stands here only where there is an authorizer
        known = permissions.known[resource]
        for row in request[asked]:
            if known.get(row[name] if name else row, 0) & operation:
                continue
            if not permissions.allows(right.operation, right.resource, row[name] if name else row):
                return _answer_some(session, request, version, api, handler, access)
        if logs_allowed:
            for row in request[asked]:
                has(session, api, right, row[name] if name else row)
        return handler(session, request, version)

    def guarded_unless_enough(session: Session, request: Values, version: int) -> Any:
        enough = sees(session, CLUSTER_ACTION) and has(session, api, CLUSTER_ACTION)
        return (handler if enough else guarded)(session, request, version)

    return guarded_unless_enough if access.action == ENOUGH else guarded


async def _answer_some(
    session: Session,
    request: Values,
    version: int,
    api: Message,
    handler: Handler,
    access: Each,
    *,
    none: bool = False,
) -> Answer:
    """The handler's answer to the rows that are allowed, with the refused ones behind it. `none`: no row is allowed."""
    right, rows = access.right, access.rows
    allowed: list[Any] = []
    refused: list[Any] = []
    # Nothing is waited for before the handler: it may be what keeps the order of a connection's requests.
    for row in request[rows.asked]:
        good = not none and sees(session, right, row[rows.name] if rows.name else row)
        (allowed if good else refused).append(row)
    code = number(right.error)

    def note(row: Any, *, good: bool) -> None:
        name = row[rows.name] if rows.name else row
        session.note_decision(api.name, right.operation, right.resource, name, allowed=good)

    def refuse(row: Any) -> Values:
        if not none:
            note(row, good=False)
        return _refuse_row(rows, row, code)

    try:
        answer = await handler(session, request | {rows.asked: allowed}, version) if allowed else {}
    finally:  # whatever the handler met, the audit log has them
        pace = session.pace()
        await pace.map(partial(note, good=True), allowed)
        told = await pace.map(refuse, refused)
    if api is PRODUCE and request["acks"] == 0:
        raise CloseConnection(f"a produce with acks=0 failed: {right.error.sentence}")
    assert isinstance(answer, dict)  # no API of the table that has such rows writes its answer itself
    if answer.get("error_code"):
        return answer
    return answer | {rows.told: [*answer.get(rows.told, ()), *told]}


def _refuse_row(rows: RowShape, row: Any, code: int) -> Values:
    named = {rows.told_name: row[rows.name] if rows.name else row} if rows.told_name else {}
    if rows.inner is None:
        return rows.error | named | {"error_code": code}
    array, index, told, told_index = rows.inner
    inner = [rows.error | {told_index: one[index] if index else one, "error_code": code} for one in row[array]]
    return named | {told: inner}
