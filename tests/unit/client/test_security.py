"""How a client connects: Kafka's and librdkafka's names, what contradicts itself, and files that cannot be used."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from korvet_fast.cli.authority import open_authority
from korvet_fast.client.producer.async_producer import AsyncProducer
from korvet_fast.client.producer.config import read_config
from korvet_fast.client.producer.dialects import LEGACY, TEXT, Dialect
from korvet_fast.client.protocol.sasl import OAuthLogin, SaslLogin, TokenEndpoint
from korvet_fast.client.security import PLAINTEXT, Security, is_security, read_security
from korvet_fast.client.tls import make_context
from korvet_fast.endpoint import read_https_url
from korvet_fast.errors import SettingError

SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="p=;\\"l";'
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, PLAINTEXT),
        ({"security.protocol": "PLAINTEXT"}, PLAINTEXT),
        ({"security.protocol": "ssl"}, Security(tls=True)),
        (
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": "ca.pem",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": "client.pem",
                "ssl.key.password": "secret",
                "ssl.endpoint.identification.algorithm": "",
            },
            Security(True, "ca.pem", "client.pem", "", "secret", check_host=False),
        ),
        (
            {
                "security_protocol": "SSL",
                "ssl_ca_location": "ca.pem",
                "ssl_certificate_location": "client.pem",
                "ssl_key_location": "client.key",
                "ssl_endpoint_identification_algorithm": "https",
            },
            Security(True, "ca.pem", "client.pem", "client.key"),
        ),
    ],
)
def test_settings(given: dict[str, str], expected: Security) -> None:
    assert all(map(is_security, given))
    assert read_security(given) == expected
    assert read_config(given).security == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"security.protocol": "SASL_SSL"}, "needs sasl.mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTH"),
        ({"security.protocol": "TLS"}, "it must be PLAINTEXT or SSL or SASL_PLAINTEXT or SASL_SSL"),
        ({"sasl.mechanism": "PLAIN"}, "sasl.mechanism is of SASL: set security.protocol=SASL_SSL as well"),
        ({"sasl.kerberos.service.name": "kafka"}, "setting 'sasl.kerberos.service.name'; docs/security.md has all of"),
        ({"sasl.oauth.token.provide": "x"}, "setting 'sasl.oauth.token.provide'; docs/security.md"),  # not for files
        ({"ssl_keystore_locatoin": "x"}, "there is no setting 'ssl.keystore.locatoin'; did you mean 'ssl.keystore.loc"),
        (SASL | {"sasl.mechanism": "GSSAPI"}, "it must be PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512 or OAUTHBEARER"),
        (SASL | {"sasl.username": "ann"}, "needs sasl.jaas.config, or sasl.username and sasl.password"),
        (SASL | {"sasl.password": ""}, "sasl.password cannot be used; it must be a text"),
        (SASL | {"sasl.jaas.config": JAAS, "sasl.username": "ann"}, "leave out sasl.username and sasl.password"),
        (
            SASL | {"sasl.jaas.config": JAAS.replace("plain", "scram")},
            "sasl.jaas.config cannot be used; it must be of a",
        ),
        (SASL | {"sasl.jaas.config": JAAS.rstrip(";")}, 'password="PASSWORD"; with one semicolon, at its end'),
        (SASL | {"sasl.jaas.config": JAAS + JAAS}, 'password="PASSWORD"; with one semicolon, at its end'),
        (SASL | {"sasl.jaas.config": JAAS.replace("username", "name")}, 'required username="NAME"'),
        (SASL | {"sasl.jaas.config": JAAS.replace("=", " ")}, 'required username="NAME"'),
        (SASL | {"sasl.jaas.config": JAAS.replace('l"', "l")}, "at its end, and no quote that stands alone"),
        (SASL | {"sasl.jaas.config": ";"}, 'password="PASSWORD"; with one semicolon, at its end'),
        (SASL | {"ssl.ca.location": "ca.pem", "sasl.jaas.config": JAAS}, "set security.protocol=SASL_SSL as well"),
        ({"ssl.cipher.suites": "x"}, "there is no setting 'ssl.cipher.suites'; docs/security.md has all of them"),
        ({"ssl.ca.location": "ca.pem"}, "ssl.ca.location is of TLS: set security.protocol=SSL as well"),
        ({"ssl.truststore.type": "PEM", "security.protocol": "PLAINTEXT"}, "ssl.truststore.type is of TLS"),
        ({"security.protocol": "SSL", "ssl.truststore.type": "JKS"}, "openssl pkcs12 -in STORE"),
        ({"security.protocol": "SSL", "ssl.ca.location": ""}, "it must be the name of a PEM file"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldaps"}, "it must be https or none"),
        ({"security.protocol": "SSL", "ssl.key.location": "a"}, "set ssl.keystore.location as well"),
        ({"security.protocol": "SSL", "ssl.key.password": "a"}, "set ssl.keystore.location as well"),
        (
            {"security.protocol": "SSL", "ssl.ca.location": "a", "ssl.truststore.location": "b"},
            "ssl.truststore.location and ssl.ca.location are the same setting",
        ),
    ],
)
def test_settings_that_cannot_be(given: dict[str, str], words: str) -> None:
    for read in (read_security, read_config):
        with pytest.raises(SettingError) as caught:
            read(given)
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("given", "login"),
    [
        ({"sasl.jaas.config": JAAS}, SaslLogin("PLAIN", "ann", 'p=;"l')),
        ({"sasl.username": "ann", "sasl.password": " p "}, SaslLogin("PLAIN", "ann", " p ")),
        ({"sasl_username": "ann", "sasl_password": "p"}, SaslLogin("PLAIN", "ann", "p")),
        (
            {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": f"{SCRAM_MODULE} required\n username=ann\tpassword = 'p' user_bob=\"x\" ;",
            },
            SaslLogin("SCRAM-SHA-512", "ann", "'p'"),
        ),
    ],
)
def test_who_logs_in(given: dict[str, str], login: SaslLogin) -> None:
    for read in (read_security, lambda settings: read_config(settings).security):
        assert read(SASL | given) == Security(login=login)
    inside = read_security(SASL | given | {"security.protocol": "SASL_SSL", "ssl.ca.location": "ca.pem"})
    assert inside == Security(tls=True, authorities="ca.pem", login=login)


BEARER = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
ENDPOINT = {"sasl.oauthbearer.token.endpoint.url": "https://login.test/token"}
ANN = {"sasl.oauthbearer.client.id": "ann", "sasl.oauthbearer.client.secret": "secret"}
BEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.mark.parametrize(
    "given",
    [
        ENDPOINT | ANN | {"sasl.oauthbearer.method": "oidc", "https.ca.location": "ca.pem"},
        ENDPOINT
        | {
            "sasl.oauthbearer.client.credentials.client.id": "ann",
            "sasl.oauthbearer.client.credentials.client.secret": "secret",
            "sasl.oauthbearer.scope": "kafka",
            "sasl.jaas.config": f"{BEARER_MODULE} required;",
        },
        ENDPOINT | {"sasl.jaas.config": f'{BEARER_MODULE} required clientId="ann" clientSecret="secret";'},
        ENDPOINT
        | {"sasl.oauthbearer.client.id": "ann"}
        | {"sasl.jaas.config": f'{BEARER_MODULE} required clientId="bob" clientSecret="secret";'},
    ],
)
def test_who_gets_tokens_from_an_endpoint(given: dict[str, str]) -> None:
    for read in (read_security, lambda settings: read_config(settings).security):
        security = read(BEARER | given)
        assert isinstance(security.login, OAuthLogin)
        assert (security.tls, security.login.mechanism, security.login.user) == (True, "OAUTHBEARER", "ann")


def test_a_function_gives_tokens() -> None:
    security = read_security(BEARER | {"sasl_oauth_token_provider": lambda: "a.b.c"})
    assert security.login is not None
    assert security.login.user == "the token of a function"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (BEARER, "needs sasl.oauthbearer.token.endpoint.url with sasl.oauthbearer.client.credentials.client.id"),
        (BEARER | ENDPOINT, "needs sasl.oauthbearer.token.endpoint.url with"),
        (BEARER | ANN, "needs sasl.oauthbearer.token.endpoint.url with"),
        (BEARER | ANN | {"sasl.oauthbearer.token.endpoint.url": "http://login.test/"}, "begins with https://"),
        (BEARER | ANN | {"sasl.oauthbearer.token.endpoint.url": "file:///etc/token"}, "begins with https://"),
        (BEARER | ENDPOINT | ANN | {"sasl.oauthbearer.method": "default"}, "it must be oidc"),
        (BEARER | ENDPOINT | ANN | {"sasl.login.callback.handler.class": "x"}, "OAuthBearerLoginCallbackHandler"),
        (BEARER | ENDPOINT | ANN | {"sasl.username": "ann"}, "sasl.username is not for sasl.mechanism=OAUTHBEARER"),
        (BEARER | ENDPOINT | ANN | {"sasl.oauth.token.provider": len}, "both give tokens: leave one of them out"),
        (BEARER | {"sasl.oauth.token.provider": "a.b.c"}, "it must be a function without arguments"),
        (BEARER | ENDPOINT | {"sasl.jaas.config": JAAS}, "it must be of a module for sasl.mechanism=OAUTHBEARER"),
        (SASL | ENDPOINT | {"sasl.jaas.config": JAAS}, "token.endpoint.url is not for sasl.mechanism=PLAIN"),
        (ENDPOINT, "sasl.oauthbearer.token.endpoint.url is of SASL: set security.protocol=SASL_SSL as well"),
        ({"https.ca.location": "ca.pem"}, "https.ca.location is of SASL"),
    ],
)
def test_settings_of_tokens_that_cannot_be(given: dict[str, object], words: str) -> None:
    for read in (read_security, read_config):
        with pytest.raises(SettingError) as caught:
            read(given)
        assert words in str(caught.value)
        assert "secret'" not in str(caught.value)


def test_a_password_is_in_no_error() -> None:
    for given in ({"sasl.jaas.config": JAAS + "x"}, {"sasl.password": "secr\0et"}, {"sasl.jaas.config": "x secret;"}):
        with pytest.raises(SettingError) as caught:
            read_security(SASL | given)
        assert not any(secret in str(caught.value) for secret in ("secr", 'l"'))


@pytest.mark.parametrize("dialect", [TEXT, LEGACY])
def test_only_kafkas_protocol_has_logins(dialect: Dialect) -> None:
    with pytest.raises(SettingError, match=r"security.protocol: .* has no SASL; leave security.protocol out"):
        read_config(SASL | {"sasl.jaas.config": JAAS}, dialect)


def test_other_settings_are_not_of_connections() -> None:
    assert not any(map(is_security, ("acks", "sslx.ca", "client.id", "linger_ms")))


def test_without_tls_there_is_no_context() -> None:
    assert make_context(PLAINTEXT) is None


def test_a_host_is_checked_unless_told_otherwise(tmp_path: Path) -> None:
    authority = open_authority(tmp_path)
    shown = authority.issue_client("ann", 2)
    for check in (True, False):
        context = make_context(Security(True, str(tmp_path / "ca.pem"), str(shown), check_host=check))
        assert context is not None
        assert (context.check_hostname, context.verify_mode) == (check, ssl.CERT_REQUIRED)
        assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert make_context(Security(tls=True)) is not None  # the system's authorities


def test_files_are_read_again_when_they_have_changed(tmp_path: Path) -> None:
    """Brokers connect again and again: to read the system's authorities each time would take 30 ms of each."""
    authority = open_authority(tmp_path)
    security = Security(True, str(tmp_path / "ca.pem"), str(authority.issue_client("ann", 2)))
    context = make_context(security)
    assert make_context(security._replace(login=SaslLogin("PLAIN", "ann", "secret"))) is context
    authority.issue_client("ann", 3)
    assert make_context(security) is not context
    (tmp_path / "client.pem").unlink()
    with pytest.raises(SettingError, match="No such file"):
        make_context(security)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    authorities, shown = str(tmp_path / "ca.pem"), str(open_authority(tmp_path).issue_client("ann", 2))
    missing, empty = str(tmp_path / "missing.pem"), str(tmp_path / "empty.pem")
    Path(empty).write_text("")
    for security, words in (
        (Security(True, missing), f"ssl.truststore.location: {missing} cannot be read: No such file"),
        (Security(True, empty), f"ssl.truststore.location: {empty} is not a PEM file with certificates"),
        (Security(True, authorities, missing), f"ssl.keystore.location: {missing} cannot be read: No such file"),
        (Security(True, authorities, authorities), "is not a PEM file with a private key"),
        (Security(True, authorities, shown, empty), f"ssl.keystore.location: {shown} with {empty} is not"),
    ):
        with pytest.raises(SettingError) as caught:
            make_context(security)
        assert words in str(caught.value)
    with pytest.raises(SettingError, match="cannot be read: No such file"):
        AsyncProducer("127.0.0.1:1", security_protocol="SSL", ssl_ca_location=missing)


def test_a_key_may_be_apart_and_encrypted(tmp_path: Path) -> None:
    shown = open_authority(tmp_path).issue_client("ann", 2)
    key = load_pem_private_key(shown.read_bytes(), None)
    apart = tmp_path / "client.key"
    apart.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))
    security = Security(True, str(tmp_path / "ca.pem"), str(shown), str(apart), "secret")
    assert make_context(security) is not None
    with pytest.raises(SettingError, match=r"its private key is encrypted: set ssl\.key\.password"):
        make_context(security._replace(password=""))
    with pytest.raises(SettingError, match=r"ssl\.keystore\.location"):
        make_context(security._replace(password="wrong"))


def test_what_comes_into_a_log_has_no_secret() -> None:
    settings = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", **ENDPOINT, **ANN}
    files = {"ssl.keystore.location": "client.pem", "ssl.key.password": "hidden"}
    shown = repr(read_security({**settings, "sasl.oauthbearer.client.secret": "hidden", **files}))
    assert "client.pem" in shown
    assert "hidden" not in shown
    password = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "ann"}
    assert "hidden" not in repr(read_security({**password, "sasl.password": "hidden"}))
    assert "hidden" not in repr(TokenEndpoint(read_https_url("https://login.test/token"), "ann", "hidden"))
