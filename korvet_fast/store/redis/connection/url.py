"""Where a Redis is, as people write it, made into a value at once.

redis://user:password@host:6379/0                      one server
rediss://host:6379?ssl_ca_certs=ca.pem                 the same over TLS
unix:///run/redis/redis.sock?db=1                      one server, by its socket
redis+sentinel://host1,host2:26379,host3/orders        the master that these Sentinels name (rediss+sentinel: over TLS)
redis+cluster://host1:6379,host2                       a Cluster, found by any of its nodes (rediss+cluster: over TLS)

`?password_file=FILE`: the password is the first line of that file, so that it need not stand in the URL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from korvet_fast.config_def import explain_unknown
from korvet_fast.errors import SettingError

SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
EXAMPLES = "redis://host:6379/0, redis+sentinel://host1,host2,host3/name or redis+cluster://host1,host2"

_PORT, _SENTINEL_PORT = 6379, 26379
_TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_cert_reqs", "ssl_check_hostname")
_OPTIONS = (
    "db",
    "username",
    "password",
    "password_file",
    "namespace",
    "socket_timeout",
    "sentinel_username",
    "sentinel_password",
)
_SECRETS = ("password", "sentinel_password", "ssl_password")
_LONGEST_PASSWORD = 4096  # bytes
_NAMESPACE = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RedisAddress(NamedTuple):
    """Where a Redis server listens: a host and a port, or the path of a socket."""

    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Tls:
    """How the server is recognised, and we by it. Paths are of PEM files; empty: the system's CAs, no certificate."""

    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = field(default="", repr=False)
    verify: bool = True
    check_hostname: bool = True


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """A Redis to keep records in. `str()` of it is safe to log: it has no password."""

    scheme: str
    nodes: tuple[RedisAddress, ...]  # the server; or Sentinels, or nodes of the Cluster, to ask
    service: str = ""  # the Sentinels' name for the master
    db: int = 0
    user: str = ""
    password: str = field(default="", repr=False)
    password_file: str = ""  # where the password was read
    password_in_url: bool = field(default=False, compare=False, repr=False)  # the URL as given holds a password
    sentinel_user: str = ""
    sentinel_password: str = field(default="", repr=False)
    tls: Tls | None = None
    timeout: float = 5.0  # seconds that a connection or an answer may take
    namespace: str = "korvet"  # the beginning of all keys

    @property
    def sentinel(self) -> bool:
        """Whether the nodes are Sentinels."""
        return self.scheme.endswith("+sentinel")

    @property
    def cluster(self) -> bool:
        """Whether the nodes are of a Cluster."""
        return self.scheme.endswith("+cluster")

    def __str__(self) -> str:
        who = f"{self.user}@" if self.user else ""
        where = ",".join(map(str, self.nodes))
        path = f"/{self.service}" if self.sentinel else ""
        options = [f"namespace={self.namespace}"] if self.namespace != "korvet" else []
        if self.db and self.scheme == "unix":
            options.append(f"db={self.db}")
        elif self.db:
            path += f"/{self.db}"
        return f"{self.scheme}://{who}{where}{path}" + ("?" + "&".join(options) if options else "")

    def read_password(self) -> tuple[str, str]:
        """The password as its file has it now (it may have been changed since the start), and "".

        If that cannot be read: the password from before, and why.
        """
        if not self.password_file:
            return self.password, ""
        try:
            return _read_password(self.password_file), ""
        except SettingError as error:
            return self.password, str(error)


def parse_url(text: str) -> RedisUrl:
    """A URL as above -> the value. Raises `SettingError` with what is wrong, never with the password in it."""
    url = _split(text)
    options = _options(url)
    sentinel, cluster = url.scheme.endswith("+sentinel"), url.scheme.endswith("+cluster")
    who, _, where = url.netloc.rpartition("@")
    user, _, password = who.partition(":")
    password, file = unquote(password) or options.get("password", ""), options.get("password_file", "")
    if file and password:
        raise SettingError("there are two passwords, in the URL and in password_file: leave one out")
    if url.scheme == "unix":
        if where or len(url.path) < 2:
            raise SettingError("a socket is written with three slashes: unix:///run/redis/redis.sock")
        nodes, path = [RedisAddress("", 0, unquote(url.path))], ""
    else:
        nodes, path = _nodes(where, _SENTINEL_PORT if sentinel else _PORT), url.path.strip("/")
    if len(nodes) > 1 and not sentinel and not cluster:
        raise SettingError(f"{url.scheme}:// takes one host; several are {EXAMPLES.partition(', ')[2]}")
    service = ""
    if sentinel:
        service, _, path = path.partition("/")
        if not service:
            raise SettingError("what do the Sentinels call the master? Write redis+sentinel://host1,host2,host3/name")
    db = _number(path or options.get("db") or "0", "the database")
    if cluster and db:
        raise SettingError("a Cluster has no databases but 0")
    if not _NAMESPACE.fullmatch(options.get("namespace", "korvet")):
        raise SettingError("namespace must be 1 to 64 of letters, digits, '.', '_' and '-'")
    return RedisUrl(
        scheme=url.scheme,
        nodes=tuple(nodes),
        service=unquote(service),
        db=db,
        user=unquote(user) or options.get("username", ""),
        password=_read_password(file) if file else password,
        password_file=file,
        password_in_url=bool(password) or any(options.get(name) for name in _SECRETS),
        sentinel_user=options.get("sentinel_username", ""),
        sentinel_password=options.get("sentinel_password", ""),
        tls=_tls(options) if url.scheme.startswith("rediss") else None,
        timeout=_seconds(options.get("socket_timeout", "5")),
        namespace=options.get("namespace", "korvet"),
    )


def _read_password(file: str) -> str:
    """The first line of a file. Raises `SettingError`, whose text quotes nothing of the file."""
    try:
        with Path(file).open("rb") as opened:
            line = opened.readline(_LONGEST_PASSWORD + 1).rstrip(b"\r\n")
        password = line.decode()
    except OSError as error:
        raise SettingError(f"password_file {file!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingError(f"password_file {file!r}: its first line is no UTF-8") from None
    if not 0 < len(line) <= _LONGEST_PASSWORD:
        raise SettingError(f"password_file {file!r}: its first line must be the password, of 1 to 4096 bytes")
    return password


def _split(text: str) -> SplitResult:
    try:
        url = urlsplit(text)
    except ValueError:  # a bracket left open; the message would repeat what may hold a password
        raise SettingError(f"the address cannot be read; write {EXAMPLES}") from None
    if url.scheme not in SCHEMES:
        unknown = f"there is no scheme {explain_unknown(url.scheme, ('file', *SCHEMES))}"
        if unknown.endswith("?"):
            raise SettingError(unknown)
        raise SettingError(
            f"{unknown}; write file:DIRECTORY, for example file:./korvet-data, or a Redis: {EXAMPLES}; all schemes are "
            f"file, {', '.join(SCHEMES)}"
        )
    # A password that was not quoted ends up elsewhere: it must not be shown in a message about that.
    if url.fragment or (url.scheme != "unix" and "@" in url.path + url.query):
        raise SettingError("in a password #, /, ? and @ are written %23, %2F, %3F and %40")
    return url


def _options(url: SplitResult) -> Mapping[str, str]:
    options = dict(parse_qsl(url.query, keep_blank_values=True))
    known = _OPTIONS + (_TLS_OPTIONS if url.scheme.startswith("rediss") else ())
    for name in options:
        if name in _TLS_OPTIONS and name not in known:
            raise SettingError(f"{name} is of no use without TLS; write rediss in place of redis")
        if name not in known:
            raise SettingError(f"there is no option {explain_unknown(name, known)}")
    return options


def _nodes(where: str, port: int) -> list[RedisAddress]:
    nodes = []
    for part in where.split(","):
        try:
            one = urlsplit(f"//{part.strip()}")
            host, given = one.hostname, one.port
        except ValueError:
            host, given = None, None
        if not host:
            raise SettingError(f"{part!r} is no host and port; write {EXAMPLES}")
        nodes.append(RedisAddress(host, port if given is None else given))
    return nodes


def _number(text: str, what: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise SettingError(f"{what} must be a number, not {text[:80]!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 60:
        raise SettingError(f"socket_timeout must be from 0.1 to 60 seconds, not {text[:80]!r}")
    return seconds


def _tls(options: Mapping[str, str]) -> Tls:
    verify = options.get("ssl_cert_reqs", "required")
    check = options.get("ssl_check_hostname", "true").lower()
    if verify not in ("required", "none"):
        raise SettingError(f"ssl_cert_reqs must be required or none, not {verify[:80]!r}")
    if check not in ("true", "false"):
        raise SettingError(f"ssl_check_hostname must be true or false, not {check[:80]!r}")
    if options.get("ssl_keyfile") and not options.get("ssl_certfile"):
        raise SettingError("ssl_keyfile is of no use without ssl_certfile")
    return Tls(
        ca=options.get("ssl_ca_certs", ""),
        certificate=options.get("ssl_certfile", ""),
        key=options.get("ssl_keyfile", ""),
        key_password=options.get("ssl_password", ""),
        verify=verify == "required",
        check_hostname=check == "true" and verify == "required",
    )
