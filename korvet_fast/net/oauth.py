"""Who judges the tokens of OAUTHBEARER, as the settings say: keys by https, or, in tests of clients, nobody at all."""

from typing import Final

from korvet_fast.config_oauth import UNSECURED
from korvet_fast.core.authentication.jwks import RefreshTimes, SigningKeys
from korvet_fast.core.authentication.token_verifier import ClaimRules, SignedTokens, UnsecuredTokens
from korvet_fast.core.background import BackgroundTasks
from korvet_fast.core.broker import Broker
from korvet_fast.endpoint import read_https_url
from korvet_fast.errors import SettingError
from korvet_fast.net.https import HttpsError, fetch, make_trust

_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_PATIENCE: Final = 5.0  # seconds for a fetch of keys; clients that wait for it have ten to log in
_MOST: Final = 256 * 1024  # bytes of a set of keys


def open_tokens(broker: Broker) -> SignedTokens | UnsecuredTokens:
    """Who judges the tokens; its keys are fetched from now on, until it is closed. Raises `SettingError`."""
    settings = broker.settings
    rules = ClaimRules(
        settings.text("sasl.oauthbearer.sub.claim.name"),
        settings.text("sasl.oauthbearer.scope.claim.name"),
        settings.text("sasl.oauthbearer.expected.issuer"),
        [each for each in settings.text("sasl.oauthbearer.expected.audience").split(",") if each],
        settings.number("sasl.oauthbearer.clock.skew.seconds"),
    )
    url, unsecured = settings.text(_URL), settings.flag(UNSECURED)
    if url and unsecured:
        raise SettingError(f"{UNSECURED}=true takes tokens that nobody has signed: leave it out, or {_URL}")
    if unsecured:
        return UnsecuredTokens(rules)
    if not url:
        raise SettingError(
            f"sasl.enabled.mechanisms has OAUTHBEARER, so say whose tokens are good: --set {_URL}=https://…, where "
            "their provider publishes its keys"
        )
    return SignedTokens(_open_keys(broker, url), rules, broker.log)


def _open_keys(broker: Broker, address: str) -> SigningKeys:
    try:
        url = read_https_url(address)
    except ValueError as error:
        raise SettingError(f"{_URL}={address!r} cannot be used; it must be {error}") from None
    authorities = broker.settings.text("https.ca.location")
    make_trust(authorities)  # where the file cannot be used, the broker does not start

    async def fetch_keys() -> bytes:
        answer = await fetch(url, authorities, _PATIENCE, _MOST)
        if answer.status != 200:
            raise HttpsError(f"{url.text} answers {answer.status}")
        return answer.body

    refresh, backoff, most = (
        broker.settings.number(f"sasl.oauthbearer.jwks.endpoint.{name}.ms") / 1000
        for name in ("refresh", "retry.backoff", "retry.backoff.max")
    )
    # Tasks of their own: a broker that stops waits for those in its background, and a fetch may take seconds.
    start = BackgroundTasks(broker.log).start
    keys = SigningKeys(fetch_keys, RefreshTimes(refresh, backoff, most), broker.clock.monotonic, start, broker.log)
    keys.refresh_soon()
    return keys
