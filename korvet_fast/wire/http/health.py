"""/livez and /readyz: what a supervisor asks. The loop that serves clients answers, so a stall is seen here, too."""

from http import HTTPStatus

from korvet_fast.core.readiness import find_obstacle
from korvet_fast.wire.http.exchange import Answer, Exchange, say
from korvet_fast.wire.http.session import Session


async def live(_: Session, __: Exchange) -> Answer:
    """200 whenever it is answered: the process is to be left alone."""
    return say(HTTPStatus.OK, "ok")


async def ready(session: Session, exchange: Exchange) -> Answer:
    """200 while clients may be sent here, else 503; the reason is for those who may know what the store is."""
    obstacle = find_obstacle(session.broker)
    if not obstacle:
        return say(HTTPStatus.OK, "ok")
    return say(HTTPStatus.SERVICE_UNAVAILABLE, obstacle if await session.shows_token(exchange) else "not ready")
