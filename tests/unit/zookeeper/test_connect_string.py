"""Where ZooKeeper is, as people write it."""

import pytest

from korvet_fast.endpoint import Address
from korvet_fast.zookeeper.connect_string import ConnectString, read_connect_string


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("127.0.0.1:2181", (Address("127.0.0.1", 2181),), ""),
        ("127.0.0.1:2181/", (Address("127.0.0.1", 2181),), ""),
        ("127.0.0.1:2181/chroot", (Address("127.0.0.1", 2181),), "/chroot"),
        ("a:1,b:2/one/two/", (Address("a", 1), Address("b", 2)), "/one/two"),
        ("[::1]:2181/k", (Address("::1", 2181),), "/k"),
    ],
)
def test_servers_and_a_chroot(text: str, servers: tuple[Address, ...], chroot: str) -> None:
    found = read_connect_string(text)
    assert found == ConnectString(servers, chroot)
    assert str(found) == text.rstrip("/")


@pytest.mark.parametrize(
    "text", ["", "localhost", "a:1,", "a:0", "a:1//b", "a:1/../b", "a:1/.", "a:1/b/./c", "/chroot", "a:1/b\n"]
)
def test_what_is_none_is_refused_with_how_to_write_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT|no address to connect to"):
        read_connect_string(text)
