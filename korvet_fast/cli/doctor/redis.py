"""Checks a Redis to keep records in: whether it can be used, what it promises, and what would raise that."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from korvet_fast.cli.doctor.clock import judge_clock
from korvet_fast.cli.doctor.finding import Finding, bad, good, warn
from korvet_fast.cli.doctor.topics import KEYS
from korvet_fast.cli.sentence import sentence
from korvet_fast.core.cluster.identity import KEY, read_cluster_id
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.clients import Clients
from korvet_fast.store.redis.connection.replication_history import read_info
from korvet_fast.store.redis.connection.topology import Topology
from korvet_fast.store.redis.connection.url import RedisAddress, RedisUrl
from korvet_fast.store.redis.durability.durability import (
    Server,
    count_replicas,
    durability_error,
    explain,
    level,
    obstacle,
    unfit,
)
from korvet_fast.store.redis.durability.sync import read_servers
from korvet_fast.store.redis.registry import Registry
from korvet_fast.store.redis.schema import read_schema

FULL = 0.9  # share of maxmemory


class Answer(NamedTuple):
    """The findings, the failures that acknowledged records survive, in lines, and the id of the cluster that uses it.

    That is "" if none does, None if Redis could not be asked.
    """

    findings: list[Finding]
    promise: list[str]
    cluster_id: str | None = ""
    topics: Mapping[str, bytes] = MappingProxyType({})  # the registry's documents of them, by key


async def examine_redis(url: RedisUrl, durability: str, copies: int) -> Answer:
    """Look at every master that a broker would use. Writes nothing.

    `durability` and `copies`: what the settings `durability` and `min.insync.replicas` ask for.
    """
    findings = await _examine_sentinels(url) if url.sentinel else []
    topology = Topology(url)
    try:
        await topology.open()
        servers = await read_servers(topology)
        registry = Registry(topology)
        await read_schema(registry)
        cluster_id = read_cluster_id(await registry.load(KEY))
        topics = await registry.scan(KEYS)
        findings += [each async for each in _examine_clocks(topology)]
    except StoreError as error:
        return Answer([*findings, bad("redis", f"{sentence(error.detail)} A broker could not start.")], [], None)
    finally:
        await topology.close()
    sync = durability == "fsync"
    for master, server in servers.items():
        findings += judge_server(master, server, sync, copies)
    weakest = min(servers.values(), key=lambda server: level(server, sync, copies))
    promise = [] if any(map(unfit, servers.values())) else explain(weakest, sync, copies)
    return Answer(findings, promise, cluster_id, topics)


async def _examine_sentinels(url: RedisUrl) -> list[Finding]:
    clients = Clients(url)
    calls = (clients.call(node, "SENTINEL", "CKQUORUM", url.service, sentinel=True) for node in url.nodes)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    await clients.close()
    return [_judge_sentinel(node, answer) for node, answer in zip(url.nodes, answers, strict=True)]


async def _examine_clocks(topology: Topology) -> AsyncIterator[Finding]:
    """The clock of every master. Raises `StoreError`."""
    for master in topology.masters():
        told = read_info(await topology.call(master, "INFO", "server")).get("server_time_usec")
        if told is not None:
            yield judge_clock(time.time() - int(told) / 1e6, str(master))


def _judge_sentinel(node: RedisAddress, answer: object) -> Finding:
    if isinstance(answer, StoreError):
        return warn("sentinel", f"{answer.detail}; a failover needs a majority of the Sentinels")
    if isinstance(answer, BaseException):
        raise answer
    return good("sentinel", f"{node} answers, and could bring about a failover")


def judge_server(master: RedisAddress, server: Server, sync: bool, copies: int) -> Iterator[Finding]:
    """The findings about one master, where acknowledgements mean `sync` and `copies` (as for `durability_error`)."""
    yield good("redis", f"{master} is {server.product}, with {count_replicas(server.replicas)}")
    if why := unfit(server):
        yield bad("redis", f"{master} cannot keep records: {why}")
        return
    if why := durability_error(server, sync, copies):
        yield bad("durability", f"acks=all would be answered with NOT_ENOUGH_REPLICAS: {why}")
    elif why := obstacle(server):
        yield warn("durability", why)
    else:
        yield good("durability", "the file is flushed, or can be, before acks=all is answered")
    if server.failing:
        yield bad("durability", f"{master}: {server.failing}; see its log")
    yield _judge_memory(master, server)


def _judge_memory(master: RedisAddress, server: Server) -> Finding:
    used = f"{master} uses {server.used / 2**20:,.0f} MiB of memory"
    if not server.limit:
        return warn("memory", f"{used}, and may use all: set maxmemory below what the machine has")
    used += f" of {server.limit / 2**20:,.0f} (maxmemory)"
    if server.used >= server.limit:
        return bad("memory", f"{used}: appends fail. Raise maxmemory, or take records away: see log.retention.bytes.")
    if server.used > server.limit * FULL:
        return warn("memory", f"{used}; when it is full, appends fail until there is room. See log.retention.bytes.")
    return good("memory", used)
