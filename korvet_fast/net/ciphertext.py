"""What a peer has sent inside TLS, on its way through OpenSSL."""

import ssl
from typing import Final, cast

from korvet_fast.net.pool import SMALL

AT_ONCE: Final = SMALL  # bytes given to OpenSSL, and taken: it keeps a buffer as large as the largest was
_LITTLE: Final = 2048  # bytes given to it where they may be records that say little, each of which is work
_WARY: Final = 20 * 1024  # more bytes than a record has that is not whole
_NOTHING: Final = memoryview(b"")


class Ciphertext:
    """Decrypts in pieces: large ones for a peer whose records are full, small ones with turns of others between else.

    `bio` is what OpenSSL reads. `undelivered`: bytes from the socket that OpenSSL has not got yet. `over`: the peer
    sends no more. `resting`: the next bytes have to wait for a turn.
    """

    __slots__ = ("_lean", "_least", "bio", "over", "resting", "undelivered")

    def __init__(self) -> None:
        self.bio = ssl.MemoryBIO()
        self.undelivered = _NOTHING
        self.over = self.resting = False
        # Bytes that OpenSSL got beyond twice those that it gave: of records that are not whole, or that say little.
        self._lean = _WARY + 1
        self._least = 0  # of `_lean`: whoever has sent much that says little gets no large pieces any more

    @property
    def says_much(self) -> bool:
        """Whether the peer's records are full: then large reads of the socket are cheap for all."""
        return self._lean <= _WARY

    @property
    def pending(self) -> int:
        """Bytes that are held, and are no plain ones yet."""
        return self.bio.pending + len(self.undelivered)

    def begin(self) -> None:
        """Start to judge the peer by its records: the handshake is over, whose bytes say nothing about them."""
        self._lean = _WARY + 1

    def keep(self) -> None:
        """Copy what OpenSSL has not got: other connections need the buffer, and a part of a copy would keep all."""
        if self.undelivered:
            self.undelivered = memoryview(bytes(self.undelivered))

    def drop(self) -> None:
        """Forget what OpenSSL has not got."""
        self.undelivered = _NOTHING

    def feed(self) -> int:
        """Give OpenSSL the next bytes from the socket; returns how many."""
        most = AT_ONCE if self.says_much else _LITTLE
        piece, self.undelivered = self.undelivered[:most], self.undelivered[most:] or _NOTHING
        self._lean += len(piece)
        return self.bio.write(piece)

    def decrypt(self, tls: ssl.SSLObject, buffer: memoryview) -> int:
        """Fill `buffer`, all of it if so much has come; returns the bytes. Raises `ssl.SSLError`."""
        filled = fed = 0
        cut = False  # the end of a record is not there yet
        while filled < len(buffer):
            if cut or not (self.bio.pending or tls.pending()):
                if fed and self._lean > 2 * _WARY:
                    self._least, self.resting = _WARY + 1, True
                    break
                fed = self.feed()
                if not fed:
                    break
            try:
                # With a buffer the answer is a number, which typeshed does not know.
                size = cast(int, tls.read(len(buffer) - filled, cast(bytearray, buffer[filled:])))
            except ssl.SSLWantReadError:
                cut = True
                continue
            if not size:
                self.over = True
                break
            cut, filled = False, filled + size
            self._lean = max(self._least, self._lean - 2 * size)
        return filled
