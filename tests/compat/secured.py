"""A broker that asks clients who they are, in every way it has, and what a client has to be told for each of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from broker_process import BrokerProcess
from compat.clients.security import Security
from korvet_fast.cli import root
from oauth_world import make_claims, running_provider
from redis_server import free_port

PASSWORD = "a pear"
PATIENCE = 240.0  # seconds: a busy machine may take long


class Kind(NamedTuple):
    """A kind of security. `name`: how the names of its topics and groups begin. `principal`: who its clients are.

    `scram`: by which its user, whose name is `name`, may log in besides PLAIN; "": there is no such user.
    """

    name: str
    principal: str
    mechanism: str = ""
    scram: str = ""
    certificate: bool = False

    @property
    def user(self) -> str:
        return self.name if self.scram else ""


KINDS = {
    "TLS": Kind("tls", "User:ANONYMOUS"),
    "TLS with a client's certificate": Kind("mtls", "User:CN=shop", certificate=True),
    "SASL PLAIN": Kind("plain", "User:plain", "PLAIN", "SCRAM-SHA-256"),
    "SASL SCRAM-SHA-256": Kind("scram-256", "User:scram-256", "SCRAM-SHA-256", "SCRAM-SHA-256"),
    "SASL SCRAM-SHA-512": Kind("scram-512", "User:scram-512", "SCRAM-SHA-512", "SCRAM-SHA-512"),
    "SASL OAUTHBEARER": Kind("token", "User:token", "OAUTHBEARER"),
}
_ADMIN = Kind("admin", "User:admin", "SCRAM-SHA-512", "SCRAM-SHA-512")


class SecureBroker(NamedTuple):
    """`files`: with ca.pem, client.pem and token. What has a kind's name is for its clients alone."""

    tls: str
    sasl: str
    files: Path

    def bootstrap(self, kind: Kind) -> str:
        return self.sasl if kind.mechanism else self.tls

    def security(self, kind: Kind) -> Security:
        """What clients of this kind are told."""
        return Security(
            ca=str(self.files / "ca.pem"),
            certificate=str(self.files / "client.pem") if kind.certificate else "",
            mechanism=kind.mechanism,
            user=kind.user,
            password=PASSWORD if kind.user else "",
            token=str(self.files / "token") if kind.mechanism == "OAUTHBEARER" else "",
        )


@contextmanager
def secure_broker(place: Path) -> Iterator[SecureBroker]:
    """One broker with a listener for TLS, which takes certificates, and one for all mechanisms inside TLS."""
    files, store = place / "files", f"file:{place / 'data'}"
    _run("certs", str(files), "--client", "shop")
    (files / "password").write_text(f"{PASSWORD}\n")
    for kind in (_ADMIN, *KINDS.values()):
        if kind.user:
            given = ("--mechanism", kind.scram, "--password-file", str(files / "password"))
            _run("user", "add", kind.user, *given, "--store", store)
    ports = free_port(), free_port()
    listen = ("--listen", f"kafka+tls://127.0.0.1:{ports[0]}", "--listen", f"kafka+sasl+tls://127.0.0.1:{ports[1]}")
    with running_provider(place) as provider:
        (files / "token").write_text(provider.sign(make_claims("token", exp=timedelta(hours=1))))
        settings = (
            *provider.settings,
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            f"ssl.keystore.location={files}/server.pem",
            f"ssl.truststore.location={files}/ca.pem",
            "ssl.client.auth=requested",
            "authorizer=acl",
            f"super.users={_ADMIN.principal}",
            "group.initial.rebalance.delay.ms=100",
        )
        with BrokerProcess(place / "data", *settings, arguments=listen):
            broker = SecureBroker(*(f"127.0.0.1:{port}" for port in ports), files=files)
            _allow(broker)
            yield broker


def _run(*arguments: str) -> None:
    ran = CliRunner().invoke(root, arguments)
    assert ran.exit_code == 0, ran.output


def _allow(broker: SecureBroker) -> None:
    """Each kind's topics and groups for its principal, and for nobody else."""
    given: dict[str, Any] = {"bootstrap.servers": broker.sasl, "security.protocol": "SASL_SSL"}
    given |= {"ssl.ca.location": broker.security(_ADMIN).ca, "sasl.mechanism": _ADMIN.mechanism}
    admin = AdminClient(given | {"sasl.username": _ADMIN.user, "sasl.password": PASSWORD})
    pattern, everything, allow = ResourcePatternType.PREFIXED, AclOperation.ALL, AclPermissionType.ALLOW
    bindings = [
        AclBinding(resource, f"{kind.name}-", pattern, kind.principal, "*", everything, allow)
        for kind in KINDS.values()
        for resource in (ResourceType.TOPIC, ResourceType.GROUP)
    ]
    for done in admin.create_acls(bindings, request_timeout=PATIENCE).values():
        done.result(PATIENCE)
