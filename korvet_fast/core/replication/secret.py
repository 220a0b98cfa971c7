"""How brokers prove to each other that they know the shared secret, without telling it.

Each sends a number that was never used before; the answer is an HMAC over both numbers and both ids, so that an answer
holds for one connection, one direction and two brokers only.
"""

import hmac
import secrets
from pathlib import Path
from typing import Final

from korvet_fast.errors import SettingError

NONCE_SIZE: Final = 32  # bytes
OPERATOR: Final = -2  # in place of a broker's id: the command of an operator who knows the secret
_LEAST = 16  # characters


class Secret:
    """The secret that all brokers of replication.peers share."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def prove(self, prover: int, verifier: int, challenge: bytes, own: bytes, *, accepts: bool) -> bytes:
        """The proof that `prover` knows the secret. `challenge`: the verifier's nonce; `own`: the prover's.

        `accepts`: whether the prover is the one that accepted the connection.
        """
        role = b"accepts" if accepts else b"connects"
        text = b"%s %d %d " % (role, prover, verifier)
        return hmac.digest(self._value, text + challenge + own, "sha256")

    def is_proof(
        self, proof: bytes, prover: int, verifier: int, challenge: bytes, theirs: bytes, *, accepts: bool
    ) -> bool:
        """Whether this is what `prove` gives."""
        return hmac.compare_digest(proof, self.prove(prover, verifier, challenge, theirs, accepts=accepts))


def make_nonce() -> bytes:
    """A number that was never used before."""
    return secrets.token_bytes(NONCE_SIZE)


def read_secret(file: str) -> Secret:
    """Read replication.secret.file. Raises `SettingError`."""
    try:
        value = Path(file).read_bytes().strip()
    except OSError as error:
        raise SettingError(f"replication.secret.file: {file}: {error.strerror}") from None
    if len(value) < _LEAST:
        raise SettingError(
            f"replication.secret.file: {file} has {len(value)} characters, and needs {_LEAST}, the same everywhere. "
            f"To make one: head -c 32 /dev/urandom | base64 > {file}"
        )
    return Secret(value)
