"""Templates into answers, a millisecond of the loop at a time; what a browser may do with them."""

from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from korvet_fast.core.fair_queue import Pace
from korvet_fast.core.readiness import find_obstacle
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.http.exchange import Answer, Exchange
from korvet_fast.wire.http.page import show
from korvet_fast.wire.http.session import Handler, Session

HTML: Final = "text/html; charset=utf-8"
# Nothing from elsewhere, nothing inline, in no frame of another page. With no referrer at all a form had no origin.
HEADERS: Final = (
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)
# By the first of these that fits, an error of core becomes a status; all others mean that the request was wrong.
_STATUSES: Final = {
    Errors.UNKNOWN_TOPIC_OR_PARTITION: HTTPStatus.NOT_FOUND,
    Errors.GROUP_ID_NOT_FOUND: HTTPStatus.NOT_FOUND,
    Errors.TOPIC_ALREADY_EXISTS: HTTPStatus.CONFLICT,
    Errors.TOPIC_AUTHORIZATION_FAILED: HTTPStatus.FORBIDDEN,
    Errors.GROUP_AUTHORIZATION_FAILED: HTTPStatus.FORBIDDEN,
    Errors.CLUSTER_AUTHORIZATION_FAILED: HTTPStatus.FORBIDDEN,
}


_SHARED: Final = ("base.html", "parts.html")  # templates that others extend, or take macros from


@cache
def _open_environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": show.show_number,
        "size": show.show_bytes,
        "rate": show.show_rate,
        "time": show.show_time,
        "line": show.show_line,
    }
    return environment


def _load(name: str) -> Template:
    """A template, compiled with those that it is made of: while it is rendered that would hold the loop."""
    environment = _open_environment()
    for other in _SHARED:
        environment.get_template(other)
    return environment.get_template(name)


async def render(
    session: Session, name: str, pace: Pace, *, status: HTTPStatus = HTTPStatus.OK, **values: object
) -> Answer:
    """The page that a template makes of these values. Templates are compiled once, beside the loop."""
    template = await session.offload(_load, name)
    broker = session.broker
    common = {"node_id": broker.node_id, "obstacle": find_obstacle(broker), "form_token": session.service.form_token}
    body: list[bytes] = []
    some: list[str] = []
    for text in template.generate(common | values):
        some.append(text)
        if pace.due():
            body.append("".join(some).encode(errors="replace"))
            some.clear()
            await pace.turn()
    body.append("".join(some).encode(errors="replace"))
    return Answer(status, body, HTML, HEADERS)


def refusing(handler: Handler) -> Handler:
    """The handler, with a page that says what was wrong and what to do in place of its `KorvetError`."""

    async def answer(session: Session, exchange: Exchange) -> Answer:
        try:
            return await handler(session, exchange)
        except KorvetError as error:
            status = _STATUSES.get(error.error, HTTPStatus.BAD_REQUEST)
            title = "That did not work"
            return await render(session, "error.html", session.pace(), status=status, title=title, error=error)

    return answer
