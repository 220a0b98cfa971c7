"""How a client connects, by the names that Kafka's clients have for it: values only, read from their settings.

Files are PEM. Where librdkafka has another name than Kafka's Java client, both are known.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from korvet_fast.errors import SettingError

_PROTOCOL: Final = "security.protocol"
_GROUPS: Final = ("security.", "ssl.", "sasl.")


class Security(NamedTuple):
    """`tls`: connections are inside TLS. Files: `authorities` (those of the system if empty), `certificate` with its
    chain, `key` (in `certificate` if empty). `password`: of an encrypted key. `check_host`: a certificate has to be for
    the host that was asked for.
    """

    tls: bool = False
    authorities: str = ""
    certificate: str = ""
    key: str = ""
    password: str = ""
    check_host: bool = True


PLAINTEXT: Final = Security()


def _protocol(value: str) -> bool:
    if value.upper().startswith("SASL_"):
        raise ValueError("PLAINTEXT or SSL; passwords (SASL) are not supported yet")
    return bool(_choose({"PLAINTEXT": False, "SSL": True})(value.upper()))


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


# The field that a setting fills, and how its value is read; "": it says nothing that is not so anyway.
_SETTINGS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    _PROTOCOL: ("tls", _protocol),
    "ssl.truststore.location": ("authorities", _file),
    "ssl.ca.location": ("authorities", _file),
    "ssl.truststore.type": ("", _pem),
    "ssl.keystore.location": ("certificate", _file),
    "ssl.certificate.location": ("certificate", _file),
    "ssl.keystore.type": ("", _pem),
    "ssl.key.location": ("key", _file),
    "ssl.key.password": ("password", str),
    "ssl.endpoint.identification.algorithm": ("check_host", _choose({"https": True, "none": False, "": False})),
}


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
            raise SettingError(f"{written} is not supported; these are: {', '.join(_SETTINGS)}")
        field, read = _SETTINGS[name]
        if field and field in named:
            raise SettingError(f"{written} and {named[field]} are the same setting; give one of them")
        named[field] = written
        try:
            found[field] = read(str(value))
        except ValueError as error:
            raise SettingError(f"{written}={value!r} cannot be used; it must be {error}") from None
    found.pop("", None)
    security = Security(**found)
    of_tls = [written for field, written in named.items() if field != "tls"]
    if of_tls and not security.tls:
        raise SettingError(f"{of_tls[0]} is of TLS: set {_PROTOCOL}=SSL as well")
    if security.key and not security.certificate:
        raise SettingError(f"{named['key']} is the key of a certificate: set ssl.keystore.location as well")
    if security.password and not security.certificate:
        raise SettingError(f"{named['password']} is the password of a key: set ssl.keystore.location as well")
    return security


def _spell(name: str) -> str:
    return name.replace("_", ".").lower()
