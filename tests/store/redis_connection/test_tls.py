"""TLS: who is let in, who is not, and a whole store over it, as a user with the least rights."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.url import parse_url
from korvet_fast.store.redis.durability.sync import Durability
from korvet_fast.store.redis.registry import Registry
from korvet_fast.store.redis.store import RedisStore
from korvet_fast.store.types import LogFormat
from redis_tls import USER, TlsServer, make_certificates
from store import scene as store_scene
from store.engines import NOW
from store.redis_connection.scene import scene

KEY = "korvet:orders:0"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def start_tls(tmp_path: Path, certificates: Path) -> Iterator[Callable[..., TlsServer]]:
    """Starts servers with TLS; they end with the test."""
    started: list[TlsServer] = []

    def start(**options: str) -> TlsServer:
        started.append(TlsServer(tmp_path / f"tls-{len(started)}", certificates, appendonly="yes", **options))
        started[-1].start()
        return started[-1]

    yield start
    for server in started:
        server.kill()


async def refused(url: str) -> str:
    """Why no connection comes about."""
    with pytest.raises(StoreError) as error:
        async with scene(url):
            raise AssertionError("it opened")
    return error.value.detail


async def test_the_server_is_known_by_its_ca(start_tls: Callable[..., TlsServer]) -> None:
    server = start_tls()
    for host in ("127.0.0.1", "localhost"):
        async with scene(server.tls_url(host=host)) as there:
            assert await there.ask(KEY, "SET", KEY, bytes(3_000_000)) == "OK"
            assert await there.ask(KEY, "GET", KEY) == bytes(3_000_000)
            assert await there.call("STRLEN", KEY) == 3_000_000


async def test_a_server_that_nobody_vouches_for(start_tls: Callable[..., TlsServer]) -> None:
    server = start_tls()
    url = f"rediss://127.0.0.1:{server.tls_port}"
    assert "no TLS connection: CERTIFICATE_VERIFY_FAILED" in await refused(url)
    async with scene(url + "?ssl_cert_reqs=none") as there:
        assert await there.ask(KEY, "PING") == "PONG"
        assert await there.call("PING") == b"PONG"


async def test_a_server_of_another_name(start_tls: Callable[..., TlsServer]) -> None:
    server = start_tls(name="other")
    assert "no TLS connection: CERTIFICATE_VERIFY_FAILED" in await refused(server.tls_url())
    async with scene(server.tls_url(ssl_check_hostname="false")) as there:
        assert await there.ask(KEY, "PING") == "PONG"
        assert await there.call("PING") == b"PONG"


async def test_a_server_that_wants_to_know_its_clients(start_tls: Callable[..., TlsServer], certificates: Path) -> None:
    server = start_tls(tls_auth_clients="yes")
    assert await refused(server.tls_url())
    mine = {"ssl_certfile": str(certificates / "client.pem"), "ssl_keyfile": str(certificates / "client.key")}
    async with scene(server.tls_url(**mine)) as there:
        assert await there.ask(KEY, "PING") == "PONG"
        assert await there.call("PING") == b"PONG"


async def test_files_that_cannot_be_used(
    start_tls: Callable[..., TlsServer], certificates: Path, tmp_path: Path
) -> None:
    server = start_tls()
    assert "none.pem cannot be used: No such file" in await refused(server.tls_url(ssl_ca_certs="none.pem"))
    (tmp_path / "empty.pem").write_text("")
    assert "empty.pem cannot be used" in await refused(server.tls_url(ssl_ca_certs=str(tmp_path / "empty.pem")))
    wrong = {"ssl_certfile": str(certificates / "client.pem"), "ssl_keyfile": str(certificates / "server.key")}
    assert "client.pem with its key cannot be used" in await refused(server.tls_url(**wrong))


async def test_tls_where_there_is_none_and_none_where_there_is(start_tls: Callable[..., TlsServer]) -> None:
    server = start_tls()
    assert "if it wants TLS, write rediss://" in await refused(f"redis://127.0.0.1:{server.tls_port}")
    assert f"127.0.0.1:{server.port}" in await refused(f"rediss://127.0.0.1:{server.port}?socket_timeout=1")


async def test_a_user_with_the_least_rights(start_tls: Callable[..., TlsServer]) -> None:
    server = start_tls()
    who = server.add_user()
    async with scene(server.tls_url(who)) as there:
        registry, durability = Registry(there.topology), Durability(there.topology)
        await durability.open()
        assert durability.durability_error(None, True, 1) == ""
        assert await registry.save("topics/a", b"1", None)
        assert await registry.scan("topics/") == {"topics/a": b"1"}
        await durability.close()
        server.restart()
        server.add_user()
        await there.lose(KEY)
        assert await registry.save("topics/a", None, b"1")
    assert server.call("ACL", "LOG") == []
    assert "WRONGPASS" in await refused(server.tls_url("korvet:other@"))
    server.call("ACL", "SETUSER", USER, "-info")
    assert "refuses INFO: NOPERM" in await refused(server.tls_url(who))


@pytest.mark.parametrize("log_format", [LogFormat(10, entries_layout=True), LogFormat(10)], ids=["entries", "batches"])
async def test_a_whole_store_with_the_least_rights(start_tls: Callable[..., TlsServer], log_format: LogFormat) -> None:
    server = start_tls()
    store = RedisStore(parse_url(server.tls_url(server.add_user())))
    logs = store_scene.Scene(store, log_format, NOW << log_format.bits if log_format.entries_layout else 0)
    await store.open()
    try:
        assert (await logs.fill("orders:0", 3, 500, sync=True)).end == 503
        assert await logs.read_all("orders:0") == list(range(503))
        assert await logs.find_time("orders:0", 2)
        assert (await logs.delete_records("orders:0", 3)).start == 3
        if log_format.entries_layout:
            appended = asyncio.Event()
            store.shared.declare("clicks:0", log_format)
            store.shared.notify("clicks:0", 0, appended.set)
            server.call("XADD", "korvet:clicks:0", "*", "value", "foreign")
            await appended.wait()
        await logs.drop("orders:0")
        assert await logs.read_all("orders:0") == []
        assert await store.save("topics/a", b"1", None)
    finally:
        await store.close()
    assert server.call("ACL", "LOG") == []
