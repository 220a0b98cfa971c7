"""One request of HTTP/1.0 or 1.1 and the answer to it: h11 reads the one, and writes the other's head."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import h11

from korvet_fast.types import Buffer
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.http.frames import LIMIT

PLAIN: Final = "text/plain; charset=utf-8"
# Nothing here is to be kept, or taken for something else, by a browser.
_HEADERS: Final = (("x-content-type-options", "nosniff"), ("cache-control", "no-store"))
_VERSIONS: Final = (b"1.0", b"1.1")
_BEARER: Final = b"bearer "


class Answer(NamedTuple):
    """An answer: its status, its body in parts, the type of that, and headers besides."""

    status: HTTPStatus
    body: Sequence[Buffer]
    content_type: str = PLAIN
    headers: tuple[tuple[str, str], ...] = ()


def say(status: HTTPStatus, sentence: str, *headers: tuple[str, str]) -> Answer:
    """An answer for people."""
    return Answer(status, [f"{sentence}\n".encode()], PLAIN, headers)


class RequestError(Exception):
    """A request is answered with an error, and nothing after it on its connection."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self.answer = answer


class Exchange:
    """A request, and how its answer is written.

    `path`: without the query. `host`: the host that the client asked for, without the port; "" if it named none.
    `token`: what came as `Authorization: Bearer`.
    """

    def __init__(self) -> None:
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=LIMIT)
        self._broken = True  # until the request is read
        self.method = self.path = self.host = ""
        self.token = b""

    def read(self, head: bytearray) -> None:
        """Read a request's head. Raises `RequestError`; `answer` then writes the error's answer."""
        connection = self._connection
        try:
            connection.receive_data(bytes(head))
            request, end = connection.next_event(), connection.next_event()
        except h11.RemoteProtocolError as error:
            raise RequestError(say(HTTPStatus(error.error_status_hint), str(error))) from None
        if not isinstance(request, h11.Request):
            too_long = f"the head of a request may have {LIMIT} bytes"
            raise RequestError(say(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, too_long))
        if request.http_version not in _VERSIONS:
            raise RequestError(say(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "speak HTTP/1.1"))
        if not isinstance(end, h11.EndOfMessage):
            raise RequestError(say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "no request here has a body"))
        self._broken = False
        self.method = request.method.decode()
        self.path = request.target.decode().partition("?")[0]
        for name, value in request.headers:
            if name == b"host":
                self.host = _read_host(value)
            elif name == b"authorization" and value[: len(_BEARER)].lower() == _BEARER:
                self.token = value[len(_BEARER) :].strip()

    def answer(self, answer: Answer) -> tuple[Reply, bool]:
        """The bytes of an answer, and whether the connection goes on after it."""
        connection = self._connection
        size = sum(map(len, answer.body))
        headers = [("content-type", answer.content_type), ("content-length", str(size)), *_HEADERS, *answer.headers]
        if self._broken:
            headers.append(("connection", "close"))
        head = h11.Response(status_code=answer.status, reason=answer.status.phrase.encode(), headers=headers)
        reply: Reply = [connection.send(head) or b""]
        if self.method != "HEAD":
            for part in answer.body:
                connection.send_with_data_passthrough(h11.Data(data=part))  # type: ignore[arg-type]  # any buffer
                reply.append(part)
        connection.send(h11.EndOfMessage())
        return reply, not self._broken and connection.our_state is h11.DONE


def _read_host(value: bytes) -> str:
    try:
        return urlsplit(b"//" + value).hostname.decode()  # type: ignore[union-attr]  # an AttributeError is caught
    except (ValueError, AttributeError):
        return ""
