"""The settings of security in aiokafka."""

from typing import Any

from aiokafka.abc import AbstractTokenProvider

from compat.clients.security import Security, python_settings


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, given: Security) -> None:
        self._given = given

    async def token(self) -> str:
        return self._given.read_token()


def secure() -> dict[str, Any]:
    """What a connection needs, as the driver was told."""
    return python_settings(_Tokens)
