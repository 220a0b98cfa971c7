"""CLIENT_SECURITY as drivers in Python read it (README.md beside this file), and what librdkafka and others call it."""

import json
import os
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

VARIABLE = "CLIENT_SECURITY"


class Security(NamedTuple):
    """How a client logs in, inside TLS. Files: `ca`, `certificate` (key and chain), `token`. "": it has none."""

    ca: str
    certificate: str = ""
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: str = ""

    @property
    def protocol(self) -> str:
        """Kafka's security.protocol."""
        return "SASL_SSL" if self.mechanism else "SSL"

    def read_token(self) -> str:
        return Path(self.token).read_text()


def security() -> Security | None:
    """None: the listener has neither TLS nor logins."""
    said = os.environ.get(VARIABLE)
    return Security(**json.loads(said)) if said else None


def librdkafka_settings() -> dict[str, str]:
    """All but the token, which each program over librdkafka is given in its own way."""
    given = security()
    if given is None:
        return {}
    settings = {"security.protocol": given.protocol, "ssl.ca.location": given.ca}
    if given.certificate:
        settings |= {"ssl.certificate.location": given.certificate, "ssl.key.location": given.certificate}
    if given.mechanism:
        settings["sasl.mechanism"] = given.mechanism
    if given.user:
        settings |= {"sasl.username": given.user, "sasl.password": given.password}
    return settings


def confluent_settings() -> dict[str, Any]:
    """Those of confluent-kafka: a function gives the token, and says that it is good for ten minutes from now."""
    given = security()
    if given is None or not given.token:
        return dict(librdkafka_settings())
    return librdkafka_settings() | {"oauth_cb": lambda _: (given.read_token(), time.time() + 600)}


def python_settings(token_provider: Callable[[Security], object]) -> dict[str, Any]:
    """Those of kafka-python and aiokafka, which have the same names, but each a class of its own that gives tokens."""
    given = security()
    if given is None:
        return {}
    context = ssl.create_default_context(cafile=given.ca)
    if given.certificate:
        context.load_cert_chain(given.certificate)
    settings: dict[str, Any] = {"security_protocol": given.protocol, "ssl_context": context}
    if given.mechanism:
        settings["sasl_mechanism"] = given.mechanism
    if given.user:
        settings |= {"sasl_plain_username": given.user, "sasl_plain_password": given.password}
    if given.token:
        settings["sasl_oauth_token_provider"] = token_provider(given)
    return settings
