"""One request of HTTP/1.0 or 1.1 and the answer to it: h11 reads the one, and writes the other's head."""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import h11

from korvet_fast.types import Buffer
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.http.frames import FORM_LIMIT, LIMIT

PLAIN: Final = "text/plain; charset=utf-8"
# Nothing here is to be kept, or taken for something else, by a browser.
_HEADERS: Final = (("x-content-type-options", "nosniff"), ("cache-control", "no-store"))
_VERSIONS: Final = (b"1.0", b"1.1")
_BEARER: Final = b"bearer"
_BASIC: Final = b"basic"
_MOST_FIELDS: Final = 64  # of a query, or of a form


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
    `authority`: host and port. `origin`: where the page is that sent a form; "" where no browser tells. `token`: what
    came as `Authorization: Bearer`, or as the password of `Basic`. `query`, `form`: fields by name, of those that are
    there twice the last.
    """

    def __init__(self) -> None:
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=LIMIT)
        self._broken = True  # until the request is read
        self.method = self.path = self.host = self.authority = self.origin = ""
        self.token = b""
        self.query: Mapping[str, str] = {}
        self.form: Mapping[str, str] = {}

    @property
    def api(self) -> str:
        """The request's name, for the audit log: GET /topic."""
        return f"{self.method} {self.path}"

    def read(self, data: bytearray) -> None:
        """Read a request. Raises `RequestError`; `answer` then writes the error's answer."""
        connection = self._connection
        form = b""
        try:
            connection.receive_data(bytes(data))
            request = connection.next_event()
            if isinstance(request, h11.Request):
                self.method = request.method.decode()  # before anything is refused: no answer to HEAD has a body
            end = connection.next_event()
            while isinstance(end, h11.Data):
                form += end.data
                end = connection.next_event()
        except h11.RemoteProtocolError as error:
            raise RequestError(say(HTTPStatus(error.error_status_hint), str(error))) from None
        if not isinstance(request, h11.Request):
            too_long = f"the head of a request may have {LIMIT} bytes"
            raise RequestError(say(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, too_long))
        if request.http_version not in _VERSIONS:
            raise RequestError(say(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "speak HTTP/1.1"))
        if not isinstance(end, h11.EndOfMessage) or connection.trailing_data[0]:
            only = f"no request here has a body, but for forms of at most {FORM_LIMIT} bytes"
            raise RequestError(say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, only))
        self.path, _, query = request.target.decode().partition("?")
        for name, value in request.headers:
            if name == b"host":
                self.authority = value.decode("latin-1").lower()
                self.host = _read_host(value)
            elif name == b"origin":
                self.origin = value.decode("latin-1").lower()
            elif name == b"authorization":
                self.token = _read_token(value)
        self.query, self.form = _read_fields(query), _read_fields(form.decode("latin-1"))
        self._broken = False

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


def _read_token(value: bytes) -> bytes:
    """The token of an Authorization header; b"" if there is none in it."""
    scheme, _, given = value.partition(b" ")
    if scheme.lower() == _BEARER:
        return given.strip()
    if scheme.lower() == _BASIC:
        try:
            return b64decode(given.strip(), validate=True).partition(b":")[2]
        except ValueError:
            return b""
    return b""


def _read_fields(text: str) -> dict[str, str]:
    """Raises `RequestError` for more fields than any form here has."""
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise RequestError(say(HTTPStatus.BAD_REQUEST, f"a request may have {_MOST_FIELDS} fields")) from None
