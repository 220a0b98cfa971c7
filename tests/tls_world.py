"""Certificates for TLS listeners, the contexts of clients, and a client that shows what TLS on a socket really sent."""

import asyncio
import ssl
from pathlib import Path

import trustme

from korvet_fast.net.certificates import CertificateFiles, Certificates


class Authority:
    """An authority of the test's own. `file`: its certificate. The files it writes have a key and a chain."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        self._authority = trustme.CA()
        self._directory = directory
        self.file = directory / f"{name}.pem"
        self._authority.cert_pem.write_to_path(self.file)

    def issue(self, name: str = "server", *identities: str) -> Path:
        """`NAME.pem`, for 127.0.0.1 and localhost unless told otherwise; one that is there is replaced in one step."""
        made = self._authority.issue_cert(*(identities or ("127.0.0.1", "localhost")), common_name=name)
        written = self._directory / f"{name}.new"
        made.private_key_and_cert_chain_pem.write_to_path(written)
        return written.rename(self._directory / f"{name}.pem")

    def certificates(self, client_auth: str = "none", checked: float = 0.0, rules: str = "DEFAULT") -> Certificates:
        """Those of a broker, signed by this authority."""
        truststore = None if client_auth == "none" else self.file
        return Certificates(CertificateFiles(self.issue(), truststore, client_auth, rules), checked)

    def client(self, shown: Path | None = None) -> ssl.SSLContext:
        """The context of a client that trusts this authority, and shows a certificate if it has one."""
        context = ssl.create_default_context(cafile=self.file)
        if shown is not None:
            context.load_cert_chain(shown)
        return context


class TlsPeer:
    """A client with TLS over memory: it can stop in the middle of a handshake, and close its sending half alone."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext) -> None:
        self.reader = reader
        self.writer = writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")

    def hello(self) -> bytes:
        """The first bytes of a handshake."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return self._outgoing.read()
        raise AssertionError("a handshake needs an answer")

    def written(self) -> bytes:
        """What is to be sent."""
        return self._outgoing.read()

    async def shake_hands(self) -> None:
        self.writer.write(self.hello())
        await self.go_on()

    async def go_on(self) -> None:
        """The handshake from its first answer on."""
        while True:
            self._incoming.write(await self._read())
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.writer.write(self._outgoing.read())
            else:
                self.writer.write(self._outgoing.read())
                return

    async def _read(self) -> bytes:
        data = await self.reader.read(65536)
        if not data:
            raise EOFError("the other side closed")
        return data

    async def receive(self, size: int) -> bytes:
        """So many decrypted bytes."""
        found = bytearray()
        while len(found) < size:
            try:
                found += self.tls.read(size - len(found))
            except ssl.SSLWantReadError:
                self._incoming.write(await self._read())
        return bytes(found)

    def send(self, data: bytes) -> None:
        self.tls.write(data)
        self.writer.write(self._outgoing.read())

    def say_goodbye(self) -> None:
        """Tell that no more will be sent (close_notify), and keep the socket open."""
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            self.writer.write(self._outgoing.read())


async def open_tls_peer(address: tuple[str, int], context: ssl.SSLContext) -> TlsPeer:
    """Connect, and say nothing yet."""
    return TlsPeer(*await asyncio.open_connection(*address), context)
