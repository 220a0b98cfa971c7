"""One request by https, with limits of time and size: to those who sign tokens, and those who give them out.

The address is what the settings say: another scheme is refused, and a redirect is an answer like any other, so that
nobody can have a file or another server read.
"""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlencode

import h11

from korvet_fast.endpoint import HttpsUrl
from korvet_fast.errors import SettingError
from korvet_fast.net.certificates import explain_file

_HEAD: Final = 16 * 1024  # bytes of an answer's head
_READ: Final = 64 * 1024


class HttpsError(OSError):
    """There was no answer, or one beyond the limits."""


class Answer(NamedTuple):
    """`status`: HTTP's."""

    status: int
    body: bytes


def make_trust(authorities: str) -> ssl.SSLContext:
    """The context for requests: the authorities of a PEM file, those of the system if "". Raises `SettingError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if authorities:
            context.load_verify_locations(authorities)
        else:
            context.load_default_certs()
    except (OSError, ValueError) as error:
        expected = "a PEM file with certificates of authorities"
        raise SettingError(f"https.ca.location: {explain_file(authorities, error, expected)}") from None
    return context


async def fetch(
    url: HttpsUrl,
    authorities: str,
    patience: float,
    most: int,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """GET, or POST of a form. `patience`: seconds for all of it, `most`: bytes of the answer. Raises `HttpsError`."""
    try:
        async with asyncio.timeout(patience):
            # A system has hundreds of authorities, and reading them takes long.
            context = await asyncio.to_thread(make_trust, authorities)
            reader, writer = await asyncio.open_connection(url.host, url.port, ssl=context)
            try:
                exchange = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)
                writer.write(_write_request(exchange, url, form, headers or {}))
                return await _read_answer(exchange, reader, url, most)
            finally:
                writer.transport.abort()
    except HttpsError:
        raise
    except SettingError as error:
        raise HttpsError(str(error)) from None
    except TimeoutError:
        raise HttpsError(f"{url.text} did not answer within {patience:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise HttpsError(f"the certificate of {url.text} is refused: {error.verify_message}") from None
    except OSError as error:
        raise HttpsError(f"{url.text} cannot be reached: {error.strerror or error}") from None
    except h11.RemoteProtocolError as error:
        raise HttpsError(f"{url.text} does not answer as HTTP does: {error}") from None


def _write_request(
    exchange: h11.Connection, url: HttpsUrl, form: Mapping[str, str] | None, headers: Mapping[str, str]
) -> bytes:
    body = urlencode(form or {}).encode()
    sent = {"Host": url.authority, "Accept": "application/json", "Connection": "close", **headers}
    if form is not None:
        sent |= {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(body))}
    method = "GET" if form is None else "POST"
    request = h11.Request(method=method, target=url.target, headers=list(sent.items()))
    events = (request, h11.Data(data=body), h11.EndOfMessage())
    return b"".join(exchange.send(event) or b"" for event in events)


async def _read_answer(exchange: h11.Connection, reader: asyncio.StreamReader, url: HttpsUrl, most: int) -> Answer:
    status, body = 0, bytearray()
    while True:
        event = exchange.next_event()
        if event is h11.NEED_DATA:
            exchange.receive_data(await reader.read(_READ))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > most:
                raise HttpsError(f"{url.text} answers more than {most:,} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return Answer(status, bytes(body))
