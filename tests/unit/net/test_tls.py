"""Listeners with TLS over loopback sockets, with a dialect of the test's own."""

import asyncio
import logging
import random
import resource
import socket
import ssl
import warnings
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from korvet_fast.net.connection import WINDOW
from korvet_fast.net.limits import Limits, ServerLimits
from korvet_fast.net.send import TLS_SLICE
from korvet_fast.net.tls import TlsTransport
from korvet_fast.wire.dialect import FirstRequestLimits
from net_scene import Scene, run, scene
from tls_world import Authority, TlsPeer, open_tls_peer
from toy_dialect import LIMIT, ToyDialect, frame

MIB = 1 << 20


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def many_files() -> Iterator[None]:
    """As many descriptors as this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_requests_and_replies_of_every_size(authority: Authority) -> None:
    async def scenario() -> None:
        async with scene(certificates=authority.certificates()) as here:
            peer = await here.connect(authority.client())
            peer.send(*(b"echo %d" % number for number in range(300)))
            assert [await peer.reply() for _ in range(300)] == [b"echo %d" % number for number in range(300)]
            for size in (0, 1, 16_383, 16_384, 16_385, 65_536, 300_000, 5 * MIB):
                data = random.Random(size).randbytes(size)
                assert await peer.ask(b"digest " + data) == sha256(data).digest()
                assert await peer.ask(b"long %d" % size) == bytes(size)
            peer.send(b"none", *[b"long 3000000", b"echo between"] * 5)
            for _ in range(5):
                assert (len(await peer.reply()), await peer.reply()) == (3_000_000, b"echo between")

    run(scenario)


def test_bytes_that_come_one_at_a_time(authority: Authority) -> None:
    async def scenario() -> None:
        async with scene(certificates=authority.certificates()) as here:
            peer = await open_tls_peer(here.tls_address, authority.client())
            for byte in peer.hello():
                peer.writer.write(bytes([byte]))
                await asyncio.sleep(0)
            await peer.go_on()
            peer.tls.write(frame(b"echo slowly") + frame(b"echo again"))
            for byte in peer.written():
                peer.writer.write(bytes([byte]))
                await asyncio.sleep(0)
            assert await peer.receive(29) == frame(b"echo slowly") + frame(b"echo again")
            peer.writer.close()

    run(scenario)


def test_an_older_tls_than_1_2_is_refused(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scene(certificates=authority.certificates()) as here:
            old = authority.client()
            old.set_ciphers("DEFAULT:@SECLEVEL=0")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
            with pytest.raises(ssl.SSLError):
                await here.connect(old)
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = authority.client()
                context.minimum_version = context.maximum_version = version
                assert await (await here.connect(context)).ask(b"echo me") == b"echo me"

    run(scenario)
    assert "the TLS handshake failed: unsupported protocol" in caplog.text


def test_a_client_without_tls_is_told_in_the_log(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with scene(certificates=authority.certificates()) as here:
            with socket.create_connection(here.tls_address) as plain:
                plain.setblocking(False)
                plain.sendall(frame(b"echo me"))
                assert await asyncio.get_running_loop().sock_recv(plain, 100) == b""
            assert here.dialect.started == []

    run(scenario)
    assert "this is a listener with TLS, and the first bytes are of a client without it" in caplog.text


def test_clients_have_to_show_a_certificate_of_the_authority(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = Authority(tmp_path, "stranger").issue("forged", "client.test")

    async def refused(here: Scene, context: ssl.SSLContext) -> bool:
        """Whether this client gets no answer. With TLS 1.3 it only finds out after its handshake."""
        try:
            peer = await here.connect(context)
            return await peer.ask(b"echo me") != b"echo me"
        except (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError):
            return True

    async def scenario() -> None:
        known = authority.issue("known", "client.test")
        for client_auth, without in (("required", True), ("requested", False)):
            async with scene(certificates=authority.certificates(client_auth)) as here:
                for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                    answers = []
                    for shown in (None, stranger, known):
                        context = authority.client(shown)
                        context.minimum_version = context.maximum_version = version
                        answers.append(await refused(here, context))
                    assert answers == [without, True, False], (client_auth, version)

    run(scenario)
    assert "the TLS handshake failed: peer did not return a certificate" in caplog.text
    assert "the TLS handshake failed: the client's certificate is refused: " in caplog.text


def test_clients_are_named_by_their_certificates(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        certificates = authority.certificates("required", rules="RULE:^CN=ann,.*$/Ann/")
        async with scene(certificates=certificates) as here:
            ann = await here.connect(authority.client(authority.issue("ann", "client.test")))
            assert await ann.ask(b"echo me") == b"echo me"
            with pytest.raises((ConnectionError, ssl.SSLError, asyncio.IncompleteReadError)):
                await (await here.connect(authority.client(authority.issue("bob", "client.test")))).ask(b"echo me")
            assert len(here.dialect.started) == 1
            ann.send(b"bug")
            assert await ann.ended() == b""

    with caplog.at_level(logging.DEBUG, "korvet_fast"):
        run(scenario)
    assert "the connection of 127.0.0.1 (User:Ann) has shown a certificate" in caplog.text
    assert "a request of 127.0.0.1 (User:Ann) ended in an unexpected error" in caplog.text
    assert "closed the connection of 127.0.0.1: no rule of ssl.principal.mapping.rules fits CN=bob," in caplog.text


def test_brokers_are_named_by_their_subjects_whatever_the_rules_are(authority: Authority) -> None:
    dialect = ToyDialect()
    dialect.of_peers = True

    async def scenario() -> None:
        certificates = authority.certificates("required", rules="RULE:^CN=ann,.*$/Ann/")
        async with scene(dialect=dialect, certificates=certificates) as here:
            bob = await here.connect(authority.client(authority.issue("bob", "client.test")))
            assert await bob.ask(b"echo me") == b"echo me"
            assert dialect.sessions[-1].principal.startswith("User:CN=bob,")

    run(scenario)


def test_a_certificate_that_changes_drops_no_connection(authority: Authority) -> None:
    async def scenario() -> None:
        async with scene(certificates=authority.certificates()) as here:
            before = await here.connect(authority.client())
            shown = before.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            authority.issue()
            after = await here.connect(authority.client())
            assert after.writer.get_extra_info("ssl_object").getpeercert(binary_form=True) != shown
            for peer in (before, after):
                assert await peer.ask(b"echo me") == b"echo me"

    run(scenario)


def test_a_peer_that_says_goodbye_gets_its_answers(authority: Authority) -> None:
    async def scenario() -> None:
        async with scene(certificates=authority.certificates()) as here:
            for goodbye in ("of TLS", "of TCP", "both"):
                peer = await open_tls_peer(here.tls_address, authority.client())
                await peer.shake_hands()
                name = goodbye.encode()
                peer.send(frame(b"echo one") + frame(b"wait " + name))
                if goodbye != "of TCP":
                    peer.say_goodbye()
                if goodbye != "of TLS":
                    peer.writer.write_eof()
                assert await peer.receive(12) == frame(b"echo one")
                here.dialect.gate(name).set_result(None)
                assert await peer.receive(9 + len(name)) == frame(b"wait " + name)
                await peer.reader.read()  # the broker says goodbye, too, and closes
                peer.writer.close()

    run(scenario)


def test_memory_of_a_peer_that_takes_nothing_is_counted(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is not sent is counted, encrypted or not, and the loop encrypts a slice at a time."""
    slices: list[int] = []
    plain = TlsTransport.writelines

    def note(self: TlsTransport, parts: list[bytes]) -> None:
        slices.append(sum(map(len, parts)))
        plain(self, parts)

    monkeypatch.setattr(TlsTransport, "writelines", note)

    async def scenario() -> None:
        async with scene(certificates=authority.certificates()) as here:
            peer = await open_tls_peer(here.tls_address, authority.client())
            await peer.shake_hands()
            peer.send(frame(b"long 20000000") * 2)
            (connection,) = here.server.connections
            await here.until(lambda: connection._out.paused_since is not None)
            for _ in range(20):
                await asyncio.sleep(0.005)
            transport = connection._transport
            assert transport.get_write_buffer_size() > 0
            taken = sum(slices)
            assert here.server.pool.used >= transport.get_write_buffer_size() + 20_000_000 - TLS_SLICE
            assert taken < 20_000_000
            assert max(slices) <= TLS_SLICE
            for _ in range(2):
                assert await peer.receive(4) == (20_000_000).to_bytes(4, "big")
                assert not any(await peer.receive(20_000_000))
            await here.until(lambda: here.server.pool.used == 0)
            peer.writer.close()

    run(scenario)


def test_what_comes_while_requests_are_not_read_is_kept_for_later(authority: Authority) -> None:
    """More than a read of the socket has, in requests that make the connection stop reading again and again."""

    async def scenario() -> None:
        async with scene(certificates=authority.certificates()) as here:
            one = await open_tls_peer(here.tls_address, authority.client())
            other = await open_tls_peer(here.tls_address, authority.client())
            for peer in (one, other):
                await peer.shake_hands()
            parts = [b"%d" % number + random.randbytes(300_000) for number in range(80)]
            digests = [sha256(part).digest() for part in parts]
            one.send(frame(b"wait gate"))
            for part in parts:
                one.send(frame(b"digest " + part))
                other.send(frame(b"digest " + part))
            for digest in digests:
                assert await other.receive(4 + len(digest)) == frame(digest)
            assert len(here.dialect.started) < 2 * len(parts)  # the rest of the one is not read
            here.dialect.gate(b"gate").set_result(None)
            assert await one.receive(13) == frame(b"wait gate")
            for digest in digests:
                assert await one.receive(4 + len(digest)) == frame(digest)
            await here.until(lambda: here.server.pool.used == 0)
            one.writer.close()
            other.writer.close()

    run(scenario)


def test_records_that_say_little_are_read_in_many_turns(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """To OpenSSL a record of one byte is as much work as one of 16 KiB, or more: others have their turns between."""
    monkeypatch.setattr("korvet_fast.core.fair_queue.LONGEST", 0.0)  # one piece a turn, however fast it is

    async def scenario() -> None:
        async with scene(certificates=authority.certificates()) as here:
            peer = await open_tls_peer(here.tls_address, authority.client())
            await peer.shake_hands()
            data, turns = random.randbytes(10_000), 0

            async def count_turns() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            counting = asyncio.create_task(count_turns())
            for record in frame(b"digest " + data):
                peer.tls.write(bytes([record]))
            peer.writer.write(peer.written())
            assert await peer.receive(36) == frame(sha256(data).digest())
            counting.cancel()
            assert turns > 80
            peer.send(frame(b"digest " + data) * 50)  # what says more is read as before
            assert await peer.receive(36 * 50) == frame(sha256(data).digest()) * 50
            peer.writer.close()

    run(scenario)


def test_a_long_handshake_says_nothing_about_the_records_behind_it(authority: Authority) -> None:
    """A certificate of many names is more bytes than a whole record may lack, and its owner's requests are full."""

    async def scenario() -> None:
        long = authority.issue("long", *(f"host-{number}.with-a-name-of-its-own.test" for number in range(300)))
        async with scene(certificates=authority.certificates("required")) as here:
            peer = await open_tls_peer(here.tls_address, authority.client(long))
            await peer.shake_hands()
            data = random.randbytes(100_000)
            for _ in range(2):
                peer.send(frame(b"digest " + data))
                assert await peer.receive(36) == frame(sha256(data).digest())
            (connection,) = here.server.connections
            assert len(connection._transport.get_buffer(-1)) == WINDOW
            peer.writer.close()

    run(scenario)


def test_a_thousand_handshakes_that_never_end_leave_others_unharmed(
    authority: Authority, many_files: None, caplog: pytest.LogCaptureFixture
) -> None:
    """Half of them say nothing, half stop in the middle of a message; they are closed when their time is over."""
    dialect = ToyDialect()
    dialect.first_request = FirstRequestLimits(LIMIT, 3.0)

    async def scenario() -> None:
        async with scene(dialect=dialect, certificates=authority.certificates()) as here:
            plain, encrypted = await here.connect(), await here.connect(authority.client())
            for peer in (plain, encrypted):
                assert await peer.ask(b"echo me") == b"echo me"
            half_open = []
            context = authority.client()
            for number in range(1000):
                half_open.append(await open_tls_peer(here.tls_address, context))
                half_open[-1].writer.write(half_open[-1].hello()[: number % 2 * 100])
                for peer in (plain, encrypted) if number % 10 == 0 else ():
                    assert await peer.ask(b"echo %d" % number) == b"echo %d" % number
            assert here.server.pool.used < 1000 * 1000
            newcomer = await here.connect(authority.client())
            assert await newcomer.ask(b"echo new") == b"echo new"
            await here.until(lambda: len(here.server.connections) == 3)
            for peer in (plain, encrypted, newcomer):
                assert await peer.ask(b"echo still") == b"echo still"
            for each in half_open:
                each.writer.close()

    run(scenario)
    assert "a request was not complete after 3 s" in caplog.text


def test_handshakes_take_turns_with_requests(authority: Authority) -> None:
    """Two hundred that come at once are not all done before a client's next request."""
    dialect = ToyDialect()
    dialect.first_request = FirstRequestLimits(LIMIT, 200.0)  # a busy machine may take long

    async def scenario() -> None:
        async with scene(limits=Limits(frame=200.0), dialect=dialect, certificates=authority.certificates()) as here:
            plain = await here.connect()
            context = authority.client()
            peers = [await open_tls_peer(here.tls_address, context) for _ in range(200)]
            await here.until(lambda: len(here.server.connections) == 201)
            for peer in peers:
                peer.writer.write(peer.hello())
            assert await plain.ask(b"echo me") == b"echo me"
            answered = sum(bool(peer.reader._buffer) for peer in peers)  # type: ignore[attr-defined]
            assert answered < 150
            for peer in peers:
                await peer.go_on()
                peer.send(frame(b"echo me"))
            for peer in peers:
                assert await peer.receive(11) == frame(b"echo me")
                peer.writer.close()

    run(scenario)


def test_a_drain_ends_handshakes(authority: Authority) -> None:
    async def scenario() -> None:
        async with scene(certificates=authority.certificates()) as here:
            silent = await open_tls_peer(here.tls_address, authority.client())
            greeting = await open_tls_peer(here.tls_address, authority.client())
            greeting.writer.write(greeting.hello())
            await greeting.reader.read(1)
            await here.until(lambda: len(here.server.connections) == 2)
            await here.server.drain(5.0)
            assert await silent.reader.read() == b""
            await greeting.reader.read()
            for peer in (silent, greeting):
                peer.writer.close()

    run(scenario)


def test_a_silent_newcomer_makes_room(authority: Authority) -> None:
    """A connection in its handshake has sent no request, so it goes first where connections are scarce."""

    async def scenario() -> None:
        async with scene(ServerLimits(connections=2), certificates=authority.certificates()) as here:
            working = await here.connect(authority.client())
            assert await working.ask(b"echo me") == b"echo me"
            silent = await open_tls_peer(here.tls_address, authority.client())
            await here.until(lambda: len(here.server.connections) == 2)
            newcomer = await here.connect(authority.client())
            assert await newcomer.ask(b"echo new") == b"echo new"
            assert await working.ask(b"echo me") == b"echo me"
            assert await silent.reader.read() == b""
            silent.writer.close()

    run(scenario)


@pytest.mark.parametrize("seed", range(40))
def test_hostile_handshakes_are_closed_and_leave_nothing(authority: Authority, seed: int) -> None:
    """A damaged hello, bytes without sense behind a good one, a hello twice, and damage to what is established."""
    chosen = random.Random(seed)

    async def damage(peer: TlsPeer) -> None:
        hello = bytearray(peer.hello())
        for _ in range(chosen.randint(0, 3)):
            hello[chosen.randrange(1, len(hello))] = chosen.randrange(256)
        peer.writer.write(bytes(hello) + chosen.choice((b"", bytes(hello), chosen.randbytes(70_000))))

    async def scenario() -> None:
        async with scene(certificates=authority.certificates()) as here:
            witness = await here.connect()
            peer = await open_tls_peer(here.tls_address, authority.client())
            await here.until(lambda: len(here.server.connections) == 2)
            if seed % 4:
                await damage(peer)
            else:
                await peer.shake_hands()
                peer.tls.write(frame(b"echo me"))
                record = bytearray(peer.written())
                record[chosen.randrange(5, len(record))] ^= 1 << chosen.randrange(8)
                peer.writer.write(bytes(record))
            for _ in range(20):  # the server has read all of it by then
                assert await witness.ask(b"echo me") == b"echo me"
            for connection in list(here.server.connections):
                connection.check(asyncio.get_running_loop().time() + 60)  # where it waits for more: that does not come
            await here.until(lambda: len(here.server.connections) == 1)
            assert here.dialect.started == [b"echo me"] * 20
            other = await here.connect(authority.client())
            assert await other.ask(b"echo me") == b"echo me"
            peer.writer.close()

    run(scenario)
