"""The durability of acknowledged writes on a Redis, read from the server's state; and the setting that would raise it.

Four levels. D0: no append-only file is kept. D1: one is written, and flushed now and then. D2: it is flushed before
the answer. D3: D2, and replicas have it too. A server whose WAITAOF answers too early is treated as one that has none.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.clients import CommandError
from korvet_fast.store.redis.connection.replication_history import read_info

OLDEST = (7, 0)  # the oldest version of Redis; Valkey began later
LATE = 10  # seconds of silence after which a replica does not count

# From which version on WAITAOF tells the truth. Before: Redis 7.0 has none; later ones, and Valkey 8.0, count a flush
# that has not happened yet (redis PR 13793).
_TRUTHFUL = {"redis": (8, 0, 2), "valkey": (8, 1)}

LADDER = (  # the failures that each level survives
    "no restart: without an append-only file Redis comes back with its last snapshot, if there is one",
    "a clean stop of Redis; kill -9 and power failures lose the last second or two, a failover what was not copied",
    "kill -9 of Redis and a power failure: the file is flushed first; not the loss of that disk, nor a failover",
    "the loss of that server too, if a replica that has it takes over",
)


class Need(NamedTuple):
    """The confirmations that a write waits for beside its own answer."""

    flushed: bool  # WAITAOF: flushed to disks, not only received
    here: bool  # on the master's disk
    replicas: int


class Server(NamedTuple):
    """The part of a master's state and configuration that decides durability."""

    name: str  # `redis` or `valkey`, or what it calls itself
    version: tuple[int, ...]
    file: bool  # appendonly
    flush: str  # appendfsync: always, everysec, no; "" if we may not see it
    pauses: bool  # no-appendfsync-on-rewrite
    policy: str  # maxmemory-policy
    replicas: int  # replicas that keep up
    wanted: int  # min-replicas-to-write
    failing: str = ""  # the server's report of a failure with its files
    used: int = 0  # bytes of memory
    limit: int = 0  # maxmemory, in bytes; 0 for none
    uncounted: int = 0  # bytes of `used` that do not count towards the limit: buffers of replicas and of the file
    missing: str = ""  # rights that our user must be granted, as words of ACL SETUSER
    may_wait: bool = True  # our user may run WAITAOF

    @property
    def product(self) -> str:
        """Its name and version, for people."""
        return f"{self.name.capitalize()} {'.'.join(map(str, self.version))}"

    @property
    def is_full(self) -> bool:
        """Whether it refuses what needs memory: it has reached maxmemory."""
        return 0 < self.limit < self.used - self.uncounted

    @property
    def always(self) -> bool:
        """Whether an answer means that the file was flushed."""
        return self.file and self.flush == "always" and not self.pauses

    @property
    def truthful(self) -> bool:
        """Whether WAITAOF can be relied on."""
        return self.name in _TRUTHFUL and self.version >= _TRUTHFUL[self.name]

    @property
    def flushes(self) -> bool:
        """Whether D2 can be had."""
        return self.always or (self.file and self.truthful and self.may_wait and not self.pauses)


async def probe(call: Callable[..., Awaitable[Any]]) -> Server:
    """Ask a master; `call` sends it a command. Raises `StoreError`.

    What CONFIG GET would tell is taken as unknown where we have no right to it.
    """
    info = read_info(await call("INFO", "server", "memory", "persistence", "replication"))
    try:
        row = await call("CONFIG", "GET", "appendfsync", "no-appendfsync-on-rewrite", "min-replicas-to-write")
    except CommandError:
        row = []
    config = {name.decode(): value.decode() for name, value in zip(row[::2], row[1::2], strict=True)}
    return read_server(info, config)


def read_server(info: dict[str, str], config: dict[str, str]) -> Server:
    """From INFO and CONFIG GET, as names and values."""
    name = "valkey" if "valkey_version" in info else info.get("server_name", "redis")
    version = info.get(f"{name}_version", info["redis_version"])
    replicas = [info[key] for key in info if key.startswith("slave") and key[5:].isdecimal()]
    return Server(
        name,
        tuple(int(part) for part in version.split(".") if part.isdecimal()),
        info["aof_enabled"] == "1",
        config.get("appendfsync", ""),
        config.get("no-appendfsync-on-rewrite") == "yes",
        info["maxmemory_policy"],
        sum(map(_keeps_up, replicas)),
        int(config.get("min-replicas-to-write", 0)),
        _failing(info),
        int(info["used_memory"]),
        int(info["maxmemory"]),
        uncounted=int(info.get("mem_not_counted_for_evict", 0)),
    )


def _keeps_up(replica: str) -> bool:
    fields = dict(part.split("=", 1) for part in replica.split(",") if "=" in part)
    return fields.get("state") == "online" and int(fields.get("lag", LATE + 1)) <= LATE


def _failing(info: dict[str, str]) -> str:
    if info["aof_enabled"] == "1" and info.get("aof_last_write_status", "ok") != "ok":
        return "it cannot write its append-only file (aof_last_write_status)"
    if info.get("rdb_last_bgsave_status", "ok") != "ok" and info["aof_enabled"] != "1":
        return "its last snapshot failed (rdb_last_bgsave_status)"
    return ""


def unfit(server: Server) -> str:
    """Why records must not be kept there at all, in a sentence; "" if they may."""
    if server.name == "redis" and server.version < OLDEST:
        return f"it is {server.product}; 7.0 is the oldest that can be used"
    if server.policy != "noeviction":
        return (
            f"its maxmemory-policy is {server.policy}: when memory is short it would remove whole partitions; "
            "set maxmemory-policy noeviction"
        )
    if server.missing:
        return f"its user may not do all that a broker does: grant it ACL SETUSER <user> {server.missing}"
    return ""


def need(server: Server, sync: bool, copies: int) -> Need | None:
    """The sync to wait for after a write's answer, or None. Only to be asked where `durability_error` gives none."""
    flushed = sync and server.truthful and server.may_wait
    here = flushed and not server.always
    return Need(flushed, here, copies - 1) if here or copies > 1 else None


def durability_error(server: Server, sync: bool, copies: int) -> str:
    """Why a write cannot be kept so, and which setting would change that, in a sentence; "" if it can.

    `sync`: flushed before it is acknowledged. `copies`: how many servers must have it.
    """
    if why := unfit(server):
        return f"{server.product} cannot keep records: {why}"
    if sync and not server.flushes:
        return f"durability=fsync cannot be kept: {obstacle(server)}"
    if server.wanted > server.replicas:
        return (
            f"the Redis server takes no writes: min-replicas-to-write is {server.wanted}, and it has "
            f"{count_replicas(server.replicas)}"
        )
    if copies - 1 > server.replicas:
        return (
            f"min.insync.replicas={copies} asks for {count_replicas(copies - 1)} of the Redis server, and there "
            f"{'is' if server.replicas == 1 else 'are'} {server.replicas} now: attach more with REPLICAOF, or lower "
            "min.insync.replicas"
        )
    return ""


def count_replicas(number: int) -> str:
    """So many replicas, in words; those that do not keep up are not counted anywhere."""
    return f"{number} replica" if number == 1 else f"{number or 'no'} replicas"


def obstacle(server: Server) -> str:
    """The obstacle between the server and D2, with the setting that removes it; "" if there is none."""
    if not server.file:
        return f"{server.product} keeps no append-only file: set appendonly yes and appendfsync always"
    if server.pauses:
        return f"{server.product} does not flush while it rewrites its file: set no-appendfsync-on-rewrite no"
    if server.truthful and not server.may_wait:
        return f"{server.product} does not let its user wait for a flush: grant it ACL SETUSER <user> +waitaof"
    if not server.flushes:
        how = f"has appendfsync {server.flush}" if server.flush else "does not let us see appendfsync (CONFIG GET)"
        return (
            f"{server.product} {how}, and no WAITAOF that can be relied on: "
            "set appendfsync always, or use Redis 8.0.2, Valkey 8.1 or newer"
        )
    return ""


def level(server: Server, sync: bool, copies: int) -> int:
    """The step of `LADDER` that acknowledgements with acks=all reach."""
    if not server.file:
        return 0
    if not (server.always or (sync and server.flushes)):
        return 1
    return 3 if 1 < copies <= server.replicas + 1 else 2


def raising(server: Server, sync: bool, copies: int) -> str:
    """The setting that would raise the level, in a sentence."""
    reached = level(server, sync, copies)
    if reached == 3:
        return "More copies: a higher min.insync.replicas, with as many replicas and one more."
    if reached == 2:
        have = count_replicas(server.replicas)
        return f"To reach D3: min.insync.replicas=2, with two replicas or more of the Redis server (it has {have} now)."
    if why := obstacle(server):
        return f"To reach D2: {why}."
    return "To reach D2: appendfsync always on the server, or durability=fsync here, which waits for its next flush."


def explain(server: Server, sync: bool, copies: int) -> list[str]:
    """The ladder, with a mark where this server stands, and what would raise it: lines for people."""
    reached = level(server, sync, copies)
    lines = [f"{'>' if step == reached else ' '} D{step}  {text}" for step, text in enumerate(LADDER)]
    return [f"What acks=all survives on {server.product}:", *lines, raising(server, sync, copies)]


def summarise(server: Server, sync: bool, copies: int) -> str:
    """The text of `explain`, in one line."""
    reached = level(server, sync, copies)
    return f"acks=all on {server.product} survives {LADDER[reached]} (D{reached}). {raising(server, sync, copies)}"


def check(server: Server, where: object) -> None:
    """Raises `StoreError` if records must not be kept on this server."""
    if why := unfit(server):
        raise StoreError(f"{where} cannot keep records: {why}")
