"""A provider of tokens over https, on loopback: its keys, the tokens it signs, and all that can be wrong with it."""

import json
import ssl
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote_plus

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from korvet_fast.core.authentication.oauthbearer import write_client_message
from tls_world import Authority

ISSUER, AUDIENCE = "https://login.test/", "kafka"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey
RSA = rsa.generate_private_key(65537, 2048)  # made once: it takes longest


def make_jwk(key: PrivateKey, key_id: str | None, **more: Any) -> dict[str, Any]:
    """A row of a key set."""
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        row = json.loads(RSAAlgorithm.to_jwk(public))
    elif isinstance(public, ec.EllipticCurvePublicKey):
        row = json.loads(ECAlgorithm.to_jwk(public))
    else:
        row = json.loads(OKPAlgorithm.to_jwk(public))
    return (
        {name: value for name, value in row.items() if name != "key_ops"} | ({"kid": key_id} if key_id else {}) | more
    )


def make_claims(subject: str = "ann", **changes: Any) -> dict[str, Any]:
    """The claims of a good token; a change to None leaves one out, a timedelta is a time from now on."""
    now = int(time.time())
    changes |= {name: now + value.total_seconds() for name, value in changes.items() if isinstance(value, timedelta)}
    claims = {"sub": subject, "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 300, "scope": "read write"}
    return {name: value for name, value in (claims | changes).items() if value is not None}


def encode(part: object) -> str:
    """A part of a token."""
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def unsigned(claims: dict[str, Any], **header: Any) -> str:
    """A token that nobody has signed."""
    return f"{encode({'alg': 'none'} | header)}.{encode(claims)}."


def token_message(token: str) -> bytes:
    """The client's message with this token."""
    return write_client_message(token)


class Answering(Protocol):
    """Answers a request in a way of its own."""

    def __call__(self, handler: BaseHTTPRequestHandler) -> None: ...


class Provider:
    """`keys`: by id, as they are published now. `requests`: how often they were asked for. `behave` answers instead."""

    def __init__(self, url: str, authority: Authority) -> None:
        self.url = url
        self.authority = authority
        self.keys: dict[str, PrivateKey] = {"one": RSA}
        self.requests = 0
        self.tokens: list[dict[str, list[str]]] = []  # the forms of those who asked for one
        self.lifetime = 300
        self.behave: Answering | None = None

    @property
    def keys_url(self) -> str:
        return f"{self.url}/keys"

    @property
    def settings(self) -> tuple[str, ...]:
        """Of a broker that believes this provider."""
        return (
            "sasl.enabled.mechanisms=SCRAM-SHA-256,OAUTHBEARER",
            f"sasl.oauthbearer.jwks.endpoint.url={self.keys_url}",
            f"https.ca.location={self.authority.file}",
            f"sasl.oauthbearer.expected.issuer={ISSUER}",
            f"sasl.oauthbearer.expected.audience=billing,{AUDIENCE}",
        )

    def key_set(self) -> bytes:
        return json.dumps({"keys": [make_jwk(key, key_id) for key_id, key in self.keys.items()]}).encode()

    def sign(self, claims: dict[str, Any] | None = None, key_id: str = "one", algorithm: str = "RS256") -> str:
        headers = {"kid": key_id}
        return jwt.encode(make_claims() if claims is None else claims, self.keys[key_id], algorithm, headers)

    def give_token(self, handler: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        """The endpoint of tokens: any client whose secret is `secret` is whom it says."""
        form = parse_qs(handler.rfile.read(int(handler.headers["Content-Length"])).decode())
        self.tokens.append(form)
        scheme, _, given = (handler.headers["Authorization"] or "").partition(" ")
        user, _, secret = b64decode(given).decode().partition(":") if scheme == "Basic" else ("", "", "")
        if unquote_plus(secret) != "secret" or form.get("grant_type") != ["client_credentials"]:
            return 401, b'{"error":"invalid_client","error_description":"who are you?"}'
        claims = make_claims(unquote_plus(user), exp=time.time() + self.lifetime)
        found = {"access_token": self.sign(claims), "token_type": "Bearer", "expires_in": self.lifetime}
        return 200, json.dumps(found).encode()


@contextmanager
def running_provider(place: Path) -> Iterator[Provider]:
    """A provider whose certificate is of an authority in `place`."""
    authority = Authority(place, "provider-ca")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("provider"))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_GET(self) -> None:
            provider.requests += 1
            if provider.behave is not None:
                provider.behave(self)
            else:
                answer(self, 200, provider.key_set())

        def do_POST(self) -> None:
            answer(self, *provider.give_token(self))

        def log_message(self, *_: object) -> None:
            """Nothing: what clients saw is looked at."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def get_request(self) -> tuple[Any, Any]:
            accepted, address = super().get_request()
            accepted.settimeout(30)
            return context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False), address

        def handle_error(self, *_: object) -> None:
            """Nothing: some clients refuse the certificate, others hang up."""

    with Server(("127.0.0.1", 0), Handler) as server:
        provider = Provider(f"https://127.0.0.1:{server.server_port}", authority)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()


def answer(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    """One whole answer."""
    handler.send_response(status)
    for name, value in ({"Content-Type": "application/json", "Content-Length": str(len(body))} | headers).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def always(status: int, body: bytes = b"{}", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """A provider that answers so whatever it is asked."""
    return lambda handler: answer(handler, status, body, **headers)


def endless(handler: BaseHTTPRequestHandler) -> None:
    """A provider that never stops to answer; it ends when the other side does."""
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 65536)


def dripping(handler: BaseHTTPRequestHandler) -> None:
    """A provider that sends a byte now and then."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(1000):
        handler.wfile.write(b" ")
        time.sleep(0.05)
