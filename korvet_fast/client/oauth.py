"""Where a client gets the tokens by which it logs in (OAUTHBEARER): a provider's endpoint, or a function."""

import asyncio
import inspect
import json
import time
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote_plus

from korvet_fast.client.protocol.errors import ClientError, TokenUnavailable
from korvet_fast.client.protocol.sasl import OAuthLogin, TokenEndpoint, TokenSource
from korvet_fast.net.https import HttpsError, fetch

_MOST: Final = 256 * 1024  # bytes of an endpoint's answer
_USED: Final = 0.8  # of the time for which a token is good; as in Kafka's clients
_FAILED: Final = 500  # statuses from here on are failures of the provider (RFC 9110, 15.6)
_QUOTED: Final = 200  # characters of an endpoint's error


def open_source(login: OAuthLogin) -> TokenSource:
    """Where the tokens of a login come from, the same for all its connections."""
    if login.source is None:
        wanted = login.wanted
        login.source = ClientCredentials(wanted) if isinstance(wanted, TokenEndpoint) else TokenFunction(wanted)
    return login.source


class ClientCredentials:
    """The endpoint of a provider, which is told who this client is (RFC 6749, 4.4). Tokens are kept while they last."""

    def __init__(self, wanted: TokenEndpoint) -> None:
        self._wanted = wanted
        given = f"{quote_plus(wanted.client_id)}:{quote_plus(wanted.secret)}"
        self._headers = {"Authorization": f"Basic {b64encode(given.encode()).decode()}"}
        self._form = {"grant_type": "client_credentials"} | ({"scope": wanted.scope} if wanted.scope else {})
        self._token = ""
        self._until = self._ends = 0.0  # when it is time for another one, and too late, by the monotonic clock
        self._asking: asyncio.Lock | None = None

    async def fetch(self, patience: float) -> str:
        """See `TokenSource`."""
        if self._asking is None:
            self._asking = asyncio.Lock()
        async with self._asking:  # connections that begin together share one token
            if not self._token or time.monotonic() >= self._until:
                await self._renew(patience)
        return self._token

    async def _renew(self, patience: float) -> None:
        """Get another token; where the provider does not answer, the former one is used until it ends."""
        asked = time.monotonic()
        try:
            self._token, lifetime = await self._ask(patience)
        except TokenUnavailable:
            if not self._token or time.monotonic() >= self._ends:
                raise
        else:
            self._until, self._ends = asked + _USED * lifetime, asked + lifetime

    async def _ask(self, patience: float) -> tuple[str, float]:
        url, subject = self._wanted.url, self._wanted.client_id
        try:
            answer = await fetch(url, self._wanted.authorities, patience, _MOST, self._form, self._headers)
        except HttpsError as error:
            raise TokenUnavailable(f"no token for {subject!r}: {error}") from None
        found = _read_object(answer.body)
        token, lifetime = found.get("access_token"), found.get("expires_in", 0)
        if answer.status != 200 or not isinstance(token, str) or not isinstance(lifetime, int | float):
            why = " ".join(str(found[name])[:_QUOTED] for name in ("error", "error_description") if name in found)
            said = why or ("without a token" if answer.status == 200 else "without a reason")
            kind = TokenUnavailable if answer.status >= _FAILED else ClientError
            raise kind(f"no token for {subject!r}: {url.text} answers {answer.status}: {said}")
        return token, lifetime


def _read_object(body: bytes) -> dict[str, Any]:
    """The fields of a JSON object; none where the body is something else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class TokenFunction:
    """A function of the program's own that gives a token, or an object with a method `token` (kafka-python's)."""

    def __init__(self, provider: Any) -> None:
        self._provide: Callable[[], Any] = getattr(provider, "token", provider)

    async def fetch(self, patience: float) -> str:
        """See `TokenSource`. A function that is not async runs on another thread."""
        try:
            async with asyncio.timeout(patience):
                found = await asyncio.to_thread(self._provide)
                token = await found if inspect.isawaitable(found) else found
        except Exception as error:
            raise ClientError(f"sasl.oauth.token.provider gave no token: {type(error).__name__}: {error}") from error
        if not isinstance(token, str):
            raise ClientError(f"sasl.oauth.token.provider gave {type(token).__name__}, and a token is a str")
        return token
