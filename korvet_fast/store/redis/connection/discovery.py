"""Finding the masters: by asking the server itself, Sentinels, or the nodes of a Cluster."""

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple

from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.clients import Clients
from korvet_fast.store.redis.connection.url import RedisAddress, RedisUrl

SLOTS = 16_384
EVERYTHING = ((0, SLOTS - 1),)


class Shard(NamedTuple):
    """A master and the slots it serves, as ranges (first, last)."""

    master: RedisAddress
    slots: tuple[tuple[int, int], ...]


async def find_masters(url: RedisUrl, clients: Clients, known: Iterable[RedisAddress]) -> list[Shard]:
    """All masters. `known`: nodes of the Cluster to ask before those of the URL. Raises `StoreError`."""
    if url.sentinel:
        return [Shard(await _ask_sentinels(url, clients), EVERYTHING)]
    if url.cluster:
        return await _ask_cluster(clients, dict.fromkeys([*known, *url.nodes]))
    return [Shard(url.nodes[0], EVERYTHING)]


async def _ask_sentinels(url: RedisUrl, clients: Clients) -> RedisAddress:
    """The master of the last failover: a Sentinel cut off from the others still names the one before."""
    answers = await asyncio.gather(*(_ask_sentinel(url, clients, node) for node in url.nodes))
    told = [answer for answer in answers if not isinstance(answer, str)]
    if not told:
        raise StoreError(f"no Sentinel tells a master named {url.service!r}: {'; '.join(map(str, answers))}")
    return max(told, key=lambda answer: answer[0])[1]


async def _ask_sentinel(url: RedisUrl, clients: Clients, node: RedisAddress) -> tuple[int, RedisAddress] | str:
    """The number of the last failover it knows of, and the master after it; or why it tells none."""
    try:
        row = await clients.call(node, "SENTINEL", "MASTER", url.service, sentinel=True)
        # The address in that row is the old one until all replicas have been told of the new one.
        address = await clients.call(node, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", url.service, sentinel=True)
    except StoreError as error:
        return error.detail
    if not address:
        return f"{node} knows none"
    epoch = dict(zip(row[::2], row[1::2], strict=True))[b"config-epoch"]
    return int(epoch), RedisAddress(address[0].decode(), int(address[1]))


async def _ask_cluster(clients: Clients, nodes: Iterable[RedisAddress]) -> list[Shard]:
    """The slots, by the first node of a whole Cluster: one cut off from the majority says that it is not."""
    complaints = []
    for node in nodes:
        try:
            state = (await clients.call(node, "CLUSTER", "INFO")).decode()
            rows = await clients.call(node, "CLUSTER", "SLOTS")
        except StoreError as error:
            complaints.append(error.detail)
            continue
        if "cluster_state:ok" in state:
            return _shards(node, rows)
        complaints.append(f"{node}: the Cluster is not whole (cluster_state:fail)")
    raise StoreError("; ".join(complaints))


def _shards(asked: RedisAddress, rows: list[Any]) -> list[Shard]:
    slots: dict[RedisAddress, list[tuple[int, int]]] = {}
    for first, last, (host, port, *_), *_ in rows:
        # A node that does not know its own name gives none: it is the one that was asked.
        name = host.decode() if host else asked.host
        slots.setdefault(RedisAddress(name, port), []).append((first, last))
    return [Shard(master, tuple(ranges)) for master, ranges in slots.items()]
