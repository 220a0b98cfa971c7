"""The page's style and its one script."""

from collections.abc import Callable, Coroutine
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from korvet_fast.wire.http.exchange import Answer, Exchange
from korvet_fast.wire.http.session import Session

_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


@cache
def _load(name: str) -> bytes:
    return (Path(__file__).parent / name).read_bytes()


def serve_file(name: str) -> Callable[[Session, Exchange], Coroutine[Any, Any, Answer]]:
    """A handler that answers with this file of ours."""

    async def serve(session: Session, _: Exchange) -> Answer:
        return Answer(HTTPStatus.OK, [await session.offload(_load, name)], _TYPES[Path(name).suffix])

    return serve
