"""TLS between a connection and its socket, by OpenSSL over memory.

It stands in place of asyncio's own. That needs a task for each handshake, keeps bytes that the peer did not take where
nobody counts them, and does not tell that a peer has closed its sending half. Here a handshake is a client's work as
any other, in turns of the loop, and until it is done the connection is one that has sent no request yet.
"""

import asyncio
import logging
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, cast

from korvet_fast.core.fair_queue import Turns
from korvet_fast.net.certificates import Certificates
from korvet_fast.net.ciphertext import AT_ONCE, Ciphertext
from korvet_fast.net.connection import Connection
from korvet_fast.net.pool import SMALL
from korvet_fast.net.principal import PrincipalRules
from korvet_fast.net.server_context import ServerContext
from korvet_fast.printable import printable
from korvet_fast.types import Buffer

log = logging.getLogger(__name__)

_HANDSHAKE: Final = 0x16  # the first byte of every connection that begins with a TLS handshake
_NO_TLS: Final = "this is a listener with TLS, and the first bytes are of a client without it"
_TLS: Final = "TLS"  # in place of a request's name
_NO_CERTIFICATE: Final = "PEER_DID_NOT_RETURN_A_CERTIFICATE"  # to a listener that requires one
_OF_BROKERS: Final = PrincipalRules("DEFAULT")  # a secret tells who they are, and no rule for clients has to fit
_RECORD: Final = 16 * 1024  # bytes that a TLS record holds; more parts than one record are not worth joining


class TlsTransport(asyncio.BufferedProtocol, asyncio.Transport):
    """To the socket an asyncio protocol, to the connection its transport."""

    _transport: asyncio.Transport

    def __init__(self, connection: Connection, certificates: Certificates, shared: ServerContext[Connection]) -> None:
        self._connection = connection
        self._account = connection.account
        self._ciphertext = shared.ciphertext
        self._pool = shared.pool
        self._turns = Turns(shared.queue, connection.account.address)
        self._received, self._outgoing = Ciphertext(), ssl.MemoryBIO()
        self._tls = certificates.context().wrap_bio(self._received.bio, self._outgoing, server_side=True)
        self._principals = _OF_BROKERS if connection.dialect.of_peers else certificates.principals
        self._first = True  # nothing has been read yet
        self._established = self._closed = False
        self._ended = False  # the connection knows that the peer sends no more
        self._paused = self._decrypting = False  # the connection does not read; it is given bytes at this moment
        self._unsent = False  # the peer takes nothing, and what is encrypted stays
        self._counted = 0  # bytes that the pool counts for what is encrypted

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connection.connection_made(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        large = self._established and self._received.says_much and self._pool.used <= self._pool.limit
        return self._ciphertext if large else self._ciphertext[:SMALL]

    def buffer_updated(self, size: int) -> None:
        if self._closed:
            return
        if self._first:
            self._first = False
            if self._ciphertext[0] != _HANDSHAKE:
                self._connection.hang_up("foreign protocol", _NO_TLS)
                return
        self._received.undelivered = self._ciphertext[:size]
        if self._established:
            self._read_on()
        else:
            self._received.keep()
            self._count()
            self._transport.pause_reading()  # a peer that sends on has to wait for its turn
            self._turns.put_off(self._shake_hands)

    def eof_received(self) -> bool:
        # The peer may leave out the goodbye that TLS has for this: requests are framed, so none is cut short unseen.
        self._received.over = True
        self._read_on()
        return self._established and not self._closed

    def pause_writing(self) -> None:
        self._unsent = True
        self._count()
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._unsent = False
        self._count()
        self._connection.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._closed = True
        self._pool.take(self._account, -self._counted)
        self._counted = 0
        self._connection.connection_lost(error)
        del self._connection  # frees memory now, not at the next garbage collection

    # Called by the connection

    def write(self, data: Buffer) -> None:
        self.writelines([data])

    def writelines(self, parts: Iterable[Buffer]) -> None:
        if self._closed:
            return
        for data in _join_small(list(parts)):
            self._tls.write(data)
            self._flush()
        if self._unsent:
            self._count()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        if not self._closed:
            self._paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._paused = False
        if not (self._closed or self._decrypting or self._received.resting):
            self._turns.put_off(self._read_on)

    def close(self) -> None:
        """Close once the socket has taken what was written."""
        if self._closed:
            return
        self._closed = True
        if self._established:
            with suppress(ssl.SSLError):  # it wants the peer's goodbye, which is not waited for
                self._tls.unwrap()
        self._flush()  # the goodbye, or why the handshake failed
        self._transport.close()

    def abort(self) -> None:
        self._closed = True
        self._transport.abort()

    # The work

    def _shake_hands(self) -> None:
        if self._closed:
            return
        try:
            self._received.feed()
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            if self._received.undelivered:
                self._turns.put_off(self._shake_hands)
                return
            self._flush()
            self._count()
            self._transport.resume_reading()
        except ssl.SSLError as error:
            why = f"the TLS handshake failed: {_explain(error)}"
            if isinstance(error, ssl.SSLCertVerificationError) or error.reason == _NO_CERTIFICATE:
                self._connection.session.note_failed_authentication(_TLS, why)
            self._connection.hang_up("tls", why)
        else:
            self._establish()

    def _establish(self) -> None:
        connection = self._connection
        certificate = self._tls.getpeercert(binary_form=True)
        if certificate is not None:
            try:
                principal = self._principals.name(certificate)
            except ValueError as error:
                connection.session.note_failed_authentication(_TLS, str(error))
                connection.hang_up("tls", str(error))
                return
            connection.session.principal = principal
            connection.peer = f"{connection.peer} ({printable(principal)})"  # as the log names it
            log.debug("the connection of %s has shown a certificate", connection.peer)
        self._established = True
        self._received.begin()
        self._flush()
        self._read_on()  # its first request may have come with the end of the handshake

    def _read_on(self) -> None:
        """Give the connection what has come, and keep what it does not take."""
        received = self._received
        received.resting = False
        if self._established and not (self._closed or self._paused):
            self._pass_on()
        if self._closed:
            received.drop()
            return
        received.keep()
        if received.pending or self._counted:
            self._count()

    def _pass_on(self) -> None:
        """Give the connection what has come, then have the socket read, unless something stops that."""
        self._decrypting = True
        try:
            self._decrypt()
        except ssl.SSLError as error:
            self._connection.hang_up("tls", f"its TLS is broken: {_explain(error)}")
        finally:
            self._decrypting = False
        if self._closed:
            return
        if self._outgoing.pending:
            self._flush()  # TLS answers some messages by itself
        if self._received.resting:
            self._transport.pause_reading()
            self._turns.put_off(self._read_on)
        elif not self._paused:
            self._transport.resume_reading()

    def _decrypt(self) -> None:
        """Decrypt into the connection's buffers until nothing is left, or reading stops."""
        received = self._received
        while not (self._paused or self._closed or received.resting):
            if received.over:
                self._end()
                return
            filled = received.decrypt(self._tls, self._connection.get_buffer(-1))
            if filled:
                self._connection.buffer_updated(filled)
            elif not received.over:
                return

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            if not self._connection.eof_received():
                self.close()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._transport.write(self._outgoing.read())

    def _count(self) -> None:
        """Count what is encrypted: what the peer did not take, and what the connection does not read yet."""
        size = self._received.pending
        if self._unsent:
            size += self._transport.get_write_buffer_size()
        more, self._counted = size - self._counted, size
        if more:
            self._pool.take(self._account, more)


def _join_small(parts: list[Buffer]) -> Iterator[Buffer]:
    """The same bytes in one part if they fit into one record, else in parts of 64 KiB at most."""
    size = sum(map(len, parts))
    if size <= _RECORD:
        if size:
            yield b"".join(parts)
        return
    for part in parts:
        view = memoryview(part)
        for start in range(0, len(view), AT_ONCE):
            yield view[start : start + AT_ONCE]


def _explain(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message}"
    return (error.reason or "a reason unknown").replace("_", " ").lower()
