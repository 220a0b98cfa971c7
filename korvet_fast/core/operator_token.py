"""The token by which an operator's programs show that they may read more than the broker's health."""

import hmac
from pathlib import Path

from korvet_fast.errors import SettingError

_LEAST = 16  # characters: what base64 makes of 12 random bytes


class OperatorToken:
    """The token of http.token.file."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def equals(self, given: bytes) -> bool:
        """Whether `given` is the token; the time that takes tells nothing of it."""
        return hmac.compare_digest(self._value, given)


def read_token(file: str) -> OperatorToken | None:
    """Read http.token.file; None if there is none. Raises `SettingError`."""
    if not file:
        return None
    try:
        value = Path(file).read_bytes().strip()
    except OSError as error:
        raise SettingError(f"http.token.file: {file}: {error.strerror}") from None
    if len(value) < _LEAST:
        raise SettingError(
            f"http.token.file: {file} has {len(value)} characters, and needs {_LEAST}. "
            f"To make one: head -c 32 /dev/urandom | base64 > {file}"
        )
    return OperatorToken(value)
