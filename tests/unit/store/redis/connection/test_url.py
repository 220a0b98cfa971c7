"""Redis URLs as people write them, and what they are told about the rest."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.errors import SettingError
from korvet_fast.store.redis.connection.url import RedisAddress, RedisUrl, Tls, parse_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("redis://localhost", RedisUrl("redis", (RedisAddress("localhost", 6379),))),
        ("redis://10.0.0.1:7000/3", RedisUrl("redis", (RedisAddress("10.0.0.1", 7000),), db=3)),
        ("redis://[::1]:7000", RedisUrl("redis", (RedisAddress("::1", 7000),))),
        ("redis://me:s%40cret@host", RedisUrl("redis", (RedisAddress("host", 6379),), user="me", password="s@cret")),
        ("redis://:secret@host", RedisUrl("redis", (RedisAddress("host", 6379),), password="secret")),
        (
            "redis://host?username=me&password=p",
            RedisUrl("redis", (RedisAddress("host", 6379),), user="me", password="p"),
        ),
        (
            "redis://host?namespace=a.b&socket_timeout=0.5",
            RedisUrl("redis", (RedisAddress("host", 6379),), timeout=0.5, namespace="a.b"),
        ),
        ("unix:///run/redis.sock", RedisUrl("unix", (RedisAddress("", 0, "/run/redis.sock"),))),
        (
            "unix://me:p@/run/my%20redis.sock?db=2",
            RedisUrl("unix", (RedisAddress("", 0, "/run/my redis.sock"),), db=2, user="me", password="p"),
        ),
        ("rediss://host", RedisUrl("rediss", (RedisAddress("host", 6379),), tls=Tls())),
        (
            "rediss://host?ssl_ca_certs=ca.pem&ssl_certfile=c.pem&ssl_keyfile=k.pem&ssl_password=p"
            "&ssl_check_hostname=false",
            RedisUrl(
                "rediss", (RedisAddress("host", 6379),), tls=Tls("ca.pem", "c.pem", "k.pem", "p", check_hostname=False)
            ),
        ),
        (
            "rediss://host?ssl_cert_reqs=none",
            RedisUrl("rediss", (RedisAddress("host", 6379),), tls=Tls(verify=False, check_hostname=False)),
        ),
        (
            "redis+sentinel://one,two:1,[::1]:2/orders/1?sentinel_username=s&sentinel_password=t",
            RedisUrl(
                "redis+sentinel",
                (RedisAddress("one", 26379), RedisAddress("two", 1), RedisAddress("::1", 2)),
                service="orders",
                db=1,
                sentinel_user="s",
                sentinel_password="t",
            ),
        ),
        ("redis+cluster://one,two:1", RedisUrl("redis+cluster", (RedisAddress("one", 6379), RedisAddress("two", 1)))),
        ("rediss+cluster://one", RedisUrl("rediss+cluster", (RedisAddress("one", 6379),), tls=Tls())),
    ],
)
def test_a_url_is_read(text: str, url: RedisUrl) -> None:
    assert parse_url(text) == url


@pytest.mark.parametrize(
    "text",
    [
        "redis://localhost:6379",
        "redis://me@[::1]:6379/3",
        "rediss://host:1",
        "unix:///run/redis.sock",
        "unix://me@/run/redis.sock?db=2",
        "redis+sentinel://one:1,two:2/orders/1",
        "redis+cluster://one:1,two:2",
        "redis://host:1/2?namespace=shop",
        "unix:///run/redis.sock?namespace=shop&db=2",
    ],
)
def test_a_url_is_written_as_it_was_read(text: str) -> None:
    assert str(parse_url(text)) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("redi://host", "there is no scheme 'redi'; did you mean 'redis'?"),
        ("host:6379", "there is no scheme 'host'; write file:DIRECTORY, for example file:./korvet-data, or a Redis: r"),
        ("filr:data", "there is no scheme 'filr'; did you mean 'file'?"),
        ("foo:./b", "all schemes are file, redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster, redis"),
        ("redis://", "'' is no host and port"),
        ("redis://host:port", "'host:port' is no host and port"),
        ("redis://host:70000", "is no host and port"),
        ("redis://[::1", "cannot be read"),
        ("redis://one,two", "redis:// takes one host; several are redis+sentinel://"),
        ("redis://host/name", "the database must be a number, not 'name'"),
        ("redis+sentinel://one,two", "what do the Sentinels call the master?"),
        ("redis+cluster://one/1", "a Cluster has no databases but 0"),
        ("unix://run/redis.sock", "three slashes"),
        ("unix://", "three slashes"),
        ("redis://host?ssl_ca_certs=x", "ssl_ca_certs is of no use without TLS; write rediss"),
        ("redis://host?namespaces=x", "there is no option 'namespaces'; did you mean 'namespace'?"),
        ("redis://host?namespace=a:b", "namespace must be"),
        ("redis://host?socket_timeout=0", "socket_timeout must be from 0.1 to 60 seconds"),
        ("redis://host?socket_timeout=soon", "socket_timeout must be from 0.1 to 60 seconds"),
        ("rediss://host?ssl_cert_reqs=maybe", "ssl_cert_reqs must be required or none"),
        ("rediss://host?ssl_check_hostname=maybe", "ssl_check_hostname must be true or false"),
        ("rediss://host?ssl_keyfile=k.pem", "ssl_keyfile is of no use without ssl_certfile"),
        ("redis://me:pass#word@host", "in a password #, /, ? and @ are written %23, %2F, %3F and %40"),
        ("redis://me:pass/word@host", "in a password"),
        ("redis://me:pass?word@host", "in a password"),
    ],
)
def test_a_url_that_cannot_be_is_explained(text: str, words: str) -> None:
    with pytest.raises(SettingError) as refused:
        parse_url(text)
    assert words in str(refused.value)
    assert "pass" not in str(refused.value).replace("password", "")


@given(user=st.text(), password=st.text(min_size=1))
def test_any_password_can_be_written_and_none_is_shown(user: str, password: str) -> None:
    url = parse_url(f"redis://{quote(user, '')}:{quote(password, '')}@host")
    assert (url.user, url.password) == (user, password)
    hidden = RedisUrl("redis", url.nodes, user=user)
    assert (str(url), repr(url)) == (str(hidden), repr(hidden))


@given(st.text(max_size=40))
def test_whatever_is_written_gives_a_url_or_a_sentence(text: str) -> None:
    for scheme in ("redis://", "unix://", "redis+sentinel://", "rediss+cluster://", ""):
        try:
            url = parse_url(scheme + text)
        except SettingError as error:
            assert str(error)
        else:
            assert url.nodes
