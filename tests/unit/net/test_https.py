"""One request by https: addresses that are refused, and servers that answer too late, too much or not at all."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from korvet_fast.endpoint import read_https_url
from korvet_fast.errors import SettingError
from korvet_fast.net.https import Answer, HttpsError, fetch, make_trust
from oauth_world import Provider, always, dripping, endless, running_provider
from tls_world import Authority


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with running_provider(tmp_path) as running:
        yield running


def ask(provider: Provider, patience: float = 30.0, most: int = 100_000, authorities: Path | None = None) -> Answer:
    trusted = str(authorities or provider.authority.file)
    return asyncio.run(fetch(read_https_url(provider.keys_url), trusted, patience, most))


def test_an_answer(provider: Provider) -> None:
    assert ask(provider) == Answer(200, provider.key_set())
    provider.behave = always(404, b"none")
    assert ask(provider) == Answer(404, b"none")


def test_a_redirect_is_not_followed(provider: Provider) -> None:
    provider.behave = always(302, b"", Location="file:///etc/passwd")
    assert ask(provider) == Answer(302, b"")
    provider.behave = always(302, b"", Location=provider.keys_url)
    assert ask(provider).status == 302
    assert provider.requests == 2


def test_too_much(provider: Provider) -> None:
    provider.behave = endless
    with pytest.raises(HttpsError, match="answers more than 100,000 bytes"):
        ask(provider)
    provider.behave = always(200, b"x" * 100_000)
    assert len(ask(provider).body) == 100_000
    provider.behave = always(200, b"", **{f"X-{number}": "y" * 1000 for number in range(400)})
    with pytest.raises(HttpsError, match="does not answer as HTTP does"):
        ask(provider)


def test_too_late(provider: Provider) -> None:
    provider.behave = dripping
    with pytest.raises(HttpsError, match=r"did not answer within 0\.5 s"):
        ask(provider, 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = read_https_url(f"https://127.0.0.1:{silent.getsockname()[1]}/")
        with pytest.raises(HttpsError, match=r"did not answer within 0\.5 s"):
            asyncio.run(fetch(url, str(provider.authority.file), 0.5, 1000))


def test_an_answer_that_is_cut_off(provider: Provider) -> None:
    provider.behave = lambda handler: handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{")
    with pytest.raises(HttpsError, match=r"does not answer as HTTP does|cannot be reached|did not answer"):
        ask(provider, 3.0)
    provider.behave = lambda handler: handler.wfile.write(b"hello\r\n\r\n")
    with pytest.raises(HttpsError, match="does not answer as HTTP does"):
        ask(provider)


def test_a_certificate_that_is_not_trusted(provider: Provider, tmp_path: Path) -> None:
    with pytest.raises(HttpsError, match=r"the certificate of https://127\.0\.0\.1:\d+/keys is refused"):
        ask(provider, authorities=Authority(tmp_path, "other").file)
    with pytest.raises(HttpsError, match=r"the certificate of https://127\.0\.0\.1:\d+/keys is refused"):
        asyncio.run(fetch(read_https_url(provider.keys_url), "", 30, 1000))
    elsewhere = read_https_url(provider.keys_url.replace("127.0.0.1", "127.0.0.2"))
    with pytest.raises(HttpsError, match=r"refused|cannot be reached"):
        asyncio.run(fetch(elsewhere, str(provider.authority.file), 30, 1000))
    assert provider.requests == 0


def test_nobody_there(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with pytest.raises(HttpsError, match="cannot be reached: "):
        asyncio.run(fetch(read_https_url("https://127.0.0.1:1/"), str(authority.file), 30, 1000))
    with pytest.raises(HttpsError, match=r"https.ca.location: .*missing.pem cannot be read"):
        asyncio.run(fetch(read_https_url("https://127.0.0.1:1/"), str(tmp_path / "missing.pem"), 30, 1000))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "keys",
        "http://login.test/keys",
        "file:///etc/passwd",
        "file:keys.json",
        "ftp://login.test/keys",
        "https:///keys",
        "https://",
        "https://user:password@login.test/keys",
        "https://login.test:99999/keys",
        "https://login.test:port/keys",
        "https://[::1/keys",
        "https://login.test/a key",
        "https://login.test/\u00e4",
        "https://login.test/\r\nX: y",
        "https://login.test/\r\nX:y",
        "https://login.test/\tkeys",
        "https://login.test/\x01",
        "https://login.test/\x7f",
    ],
)
def test_addresses_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"an address that begins with https://"):
        read_https_url(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://login.test", ("login.test", 443, "login.test", "/")),
        ("https://login.test:8443/keys?v=2#x", ("login.test", 8443, "login.test:8443", "/keys?v=2")),
        ("https://[::1]:8443/", ("::1", 8443, "[::1]:8443", "/")),
    ],
)
def test_addresses(text: str, expected: tuple[str, int, str, str]) -> None:
    assert read_https_url(text)[1:] == expected


def test_authorities_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    with pytest.raises(SettingError, match=r"https.ca.location: .* is not a PEM file with certificates"):
        make_trust(str(tmp_path / "empty.pem"))
    assert make_trust("").check_hostname
