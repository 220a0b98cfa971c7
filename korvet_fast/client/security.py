"""How a client connects, by the names that Kafka's clients have for it: values only, read from their settings.

Files are PEM. Where librdkafka has another name than Kafka's Java client, both are known.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from korvet_fast.client.jaas import read_jaas, read_options
from korvet_fast.client.protocol.sasl import SASL_MECHANISMS, OAuthLogin, SaslLogin, TokenEndpoint
from korvet_fast.core.authentication.oauthbearer import OAUTHBEARER
from korvet_fast.endpoint import read_https_url
from korvet_fast.errors import SettingError
from korvet_fast.setting import explain_unknown

_PROTOCOL: Final = "security.protocol"
_JAAS: Final = "sasl.jaas.config"
_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
_PROVIDER: Final = "sasl.oauth.token.provider"
_MECHANISMS: Final = (*SASL_MECHANISMS, OAUTHBEARER)
_GROUPS: Final = ("security.", "ssl.", "sasl.", "https.")


class Security(NamedTuple):
    """`tls`: connections are inside TLS. Files: `authorities` (those of the system if empty), `certificate` with its
    chain, `key` (in `certificate` if empty). `password`: of an encrypted key. `check_host`: a certificate has to be for
    the host that was asked for. `login`: by SASL, None without it.
    """

    tls: bool = False
    authorities: str = ""
    certificate: str = ""
    key: str = ""
    password: str = ""
    check_host: bool = True
    login: SaslLogin | OAuthLogin | None = None

    def __repr__(self) -> str:
        return f"Security(tls={self.tls}, certificate={self.certificate!r}, login={self.login!r})"  # no password


PLAINTEXT: Final = Security()


# Inside TLS, with SASL.
_PROTOCOLS: Final = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}


def _protocol(value: str) -> tuple[bool, bool]:
    found: tuple[bool, bool] = _choose(_PROTOCOLS)(value.upper())
    return found


def _mechanism(value: str) -> str:
    found: str = _choose({each: each for each in _MECHANISMS})(value)
    return found


def _given(value: str) -> str:
    if not value or "\0" in value:
        raise ValueError("a text")
    return value


def _choose(values: Mapping[str, Any]) -> Callable[[str], Any]:
    def read(value: str) -> Any:
        if value not in values:
            raise ValueError(" or ".join(name for name in values if name))
        return values[value]

    return read


def _file(value: str) -> str:
    if not value or "\0" in value:
        raise ValueError("the name of a PEM file")
    return value


def _pem(value: str) -> None:
    if value.upper() != "PEM":
        raise ValueError("PEM; for a JKS or PKCS12 store: openssl pkcs12 -in STORE -nodes -out FILE.pem")


def _handler(value: str) -> None:
    if not value.endswith(".OAuthBearerLoginCallbackHandler"):
        raise ValueError("Kafka's OAuthBearerLoginCallbackHandler, or left out")


# The field that a setting fills, and how its value is read; "": it says nothing that is not so anyway, and nor do
# `method` and `handler`.
_SETTINGS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    _PROTOCOL: ("protocol", _protocol),
    "ssl.truststore.location": ("authorities", _file),
    "ssl.ca.location": ("authorities", _file),
    "ssl.truststore.type": ("", _pem),
    "ssl.keystore.location": ("certificate", _file),
    "ssl.certificate.location": ("certificate", _file),
    "ssl.keystore.type": ("", _pem),
    "ssl.key.location": ("key", _file),
    "ssl.key.password": ("password", str),
    "ssl.endpoint.identification.algorithm": ("check_host", _choose({"https": True, "none": False, "": False})),
    "sasl.mechanism": ("mechanism", _mechanism),
    "sasl.mechanisms": ("mechanism", _mechanism),
    "sasl.username": ("user", _given),
    "sasl.password": ("sasl_password", _given),
    _JAAS: ("jaas", _given),
    _ENDPOINT: ("endpoint", _given),
    "sasl.oauthbearer.client.credentials.client.id": ("client_id", _given),
    "sasl.oauthbearer.client.id": ("client_id", _given),
    "sasl.oauthbearer.client.credentials.client.secret": ("client_secret", _given),
    "sasl.oauthbearer.client.secret": ("client_secret", _given),
    "sasl.oauthbearer.scope": ("scope", _given),
    "sasl.oauthbearer.method": ("method", _choose({"oidc": "oidc"})),
    "sasl.login.callback.handler.class": ("handler", _handler),
    "https.ca.location": ("endpoint_authorities", _file),
    _PROVIDER: ("provider", _given),
}
_OFFERED: Final = tuple(name for name in _SETTINGS if name != _PROVIDER)  # that one is for programs only
_OF_PASSWORDS: Final = ("user", "sasl_password")
_OF_TOKENS: Final = (
    "endpoint",
    "client_id",
    "client_secret",
    "scope",
    "method",
    "handler",
    "endpoint_authorities",
    "provider",
)
_OF_SASL: Final = ("mechanism", "jaas", *_OF_PASSWORDS, *_OF_TOKENS)
_SECRET: Final = ("password", "sasl_password", "jaas", "client_secret", "provider")  # not quoted in errors


def is_security(name: str) -> bool:
    """Whether a setting of this name, with dots or underscores, says how a client connects."""
    return _spell(name).startswith(_GROUPS)


def read_security(given: Mapping[str, Any]) -> Security:
    """Read settings for which `is_security` holds. Raises `SettingError`."""
    found: dict[str, Any] = {}
    named: dict[str, str] = {}
    for written, value in given.items():
        name = _spell(written)
        if name not in _SETTINGS:
            raise SettingError(f"there is no setting {explain_unknown(name, _OFFERED, 'docs/security.md')}")
        field, read = _SETTINGS[name]
        if field and field in named:
            raise SettingError(f"{written} and {named[field]} are the same setting; give one of them")
        named[field] = written
        try:
            found[field] = value if field == "provider" else read(str(value))
        except ValueError as error:
            shown = written if field in _SECRET else f"{written}={value!r}"
            raise SettingError(f"{shown} cannot be used; it must be {error}") from None
    found.pop("", None)
    tls, sasl = found.pop("protocol", (False, False))
    login = _read_login(found, named, sasl=sasl)
    security = Security(tls=tls, login=login, **found)
    of_tls = [written for field, written in named.items() if field not in ("protocol", *_OF_SASL)]
    if of_tls and not security.tls:
        raise SettingError(f"{of_tls[0]} is of TLS: set {_PROTOCOL}={'SASL_SSL' if sasl else 'SSL'} as well")
    if security.key and not security.certificate:
        raise SettingError(f"{named['key']} is the key of a certificate: set ssl.keystore.location as well")
    if security.password and not security.certificate:
        raise SettingError(f"{named['password']} is the password of a key: set ssl.keystore.location as well")
    return security


def _read_login(found: dict[str, Any], named: Mapping[str, str], *, sasl: bool) -> SaslLogin | OAuthLogin | None:
    """Take the settings of SASL out of `found`. Raises `SettingError`."""
    given: dict[str, Any] = {field: found.pop(field) for field in _OF_SASL if field in found}
    if not sasl:
        if given:
            raise SettingError(f"{named[next(iter(given))]} is of SASL: set {_PROTOCOL}=SASL_SSL as well")
        return None
    mechanism = given.get("mechanism")
    if mechanism is None:
        raise SettingError(f"{_PROTOCOL} with SASL needs sasl.mechanism: {', '.join(_MECHANISMS)}")
    wrong = _OF_PASSWORDS if mechanism == OAUTHBEARER else _OF_TOKENS
    if others := [named[field] for field in wrong if field in given]:
        raise SettingError(f"{others[0]} is not for sasl.mechanism={mechanism}: leave one of them out")
    if mechanism == OAUTHBEARER:
        return _read_oauth(given)
    if "jaas" in given:
        if "user" in given or "sasl_password" in given:
            raise SettingError(f"{_JAAS} says who logs in: leave out sasl.username and sasl.password")
        try:
            return SaslLogin(mechanism, *read_jaas(given["jaas"], mechanism))
        except ValueError as error:
            raise SettingError(f"{_JAAS} cannot be used; it must be {error}") from None
    if "user" not in given or "sasl_password" not in given:
        raise SettingError(f"sasl.mechanism={mechanism} needs {_JAAS}, or sasl.username and sasl.password")
    return SaslLogin(mechanism, given["user"], given["sasl_password"])


def _read_oauth(given: Mapping[str, Any]) -> OAuthLogin:
    """Who gives the tokens of OAUTHBEARER. Raises `SettingError`."""
    found = dict(given)
    if "jaas" in given:
        try:
            options = read_options(given["jaas"], OAUTHBEARER)
        except ValueError as error:
            raise SettingError(f"{_JAAS} cannot be used; it must be {error}") from None
        # Kafka's client lets its settings win over the options.
        names = {"client_id": "clientId", "client_secret": "clientSecret", "scope": "scope"}
        found = {field: options[name] for field, name in names.items() if name in options} | found
    if "provider" in found:
        if "endpoint" in found:
            raise SettingError(f"{_PROVIDER} and {_ENDPOINT} both give tokens: leave one of them out")
        if not callable(getattr(found["provider"], "token", found["provider"])):
            raise SettingError(
                f"{_PROVIDER} cannot be used; it must be a function without arguments that gives a token, or an object "
                "whose method token does: a program gives it to the producer"
            )
        return OAuthLogin(found["provider"])
    if not found.get("client_id") or not found.get("client_secret") or "endpoint" not in found:
        raise SettingError(
            f"sasl.mechanism={OAUTHBEARER} needs {_ENDPOINT} with sasl.oauthbearer.client.credentials.client.id and "
            f"….client.secret (or clientId and clientSecret in {_JAAS}); or, in a program, the producer's {_PROVIDER}"
        )
    try:
        endpoint = read_https_url(found["endpoint"])
    except ValueError as error:
        raise SettingError(f"{_ENDPOINT}={found['endpoint']!r} cannot be used; it must be {error}") from None
    return OAuthLogin(
        TokenEndpoint(
            endpoint,
            found["client_id"],
            found["client_secret"],
            found.get("scope", ""),
            found.get("endpoint_authorities", ""),
        )
    )


def _spell(name: str) -> str:
    return name.replace("_", ".").lower()
