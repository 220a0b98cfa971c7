"""Checks addresses: whether they are free, whether a broker answers, and whether clients can use the advertised one."""

import asyncio
import errno
import resource
import socket
from typing import Any

from korvet_fast.cli.doctor.finding import Finding, bad, good, warn
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.connection import connect
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.endpoint import KAFKA, Address, Endpoint
from korvet_fast.errors import RAISE_FILE_LIMIT
from korvet_fast.net.limits import count_needed_files

PATIENCE = 3.0  # seconds for each answer


async def examine_address(listener: Endpoint, told: Endpoint | None, cluster_id: str | None = "") -> list[Finding]:
    """Examine one address to listen on. `told`: the address that its clients are told, if it is another one.

    `cluster_id`: of the brokers that use the store now; "" if none does, None if the store could not be asked.
    """
    try:
        free = _bind(listener)
    except OSError as error:
        return [bad("listen", f"{listener} cannot be listened on: {error.strerror}")]
    if not free:
        if listener.scheme == KAFKA:
            return await _examine_broker(listener, cluster_id)
        return [_judge(listener, cluster_id)]
    findings = [good("listen", f"{listener} is free")]
    loopback = ("127.", "::1", "localhost")
    if listener.host.startswith(loopback):
        findings.append(good("listen", f"only programs on this machine can connect to {listener.host}"))
    if told is not None:
        if told.host.startswith(loopback) and not listener.host.startswith(loopback):
            findings.append(warn("advertise", f"{told} leads a client on another machine to that machine itself"))
        findings.append(await _examine_name(told))
    return findings


def _bind(listener: Endpoint) -> bool:
    """Whether the address is free. Raises `OSError` if this machine cannot listen on it at all."""
    family, kind, protocol, _, address = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
            probe.listen()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
    return True


async def _examine_name(told: Endpoint) -> Finding:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(told.host, told.port, type=socket.SOCK_STREAM)
    except OSError as error:
        return bad("advertise", f"{told}: the name is unknown here ({error.strerror}), perhaps to clients too")
    addresses = sorted({str(row[4][0]) for row in found})
    return good("advertise", f"{told} is {', '.join(addresses)}")


def _judge(listener: Endpoint, cluster_id: str | None) -> Finding:
    """The finding about a taken address where nobody is asked: only `kafka://` tells which store a broker has."""
    if cluster_id == "":
        return bad(
            "listen", f"{listener} is taken, and no broker over this store is ready. Choose another port, or wait."
        )
    return warn("listen", f"{listener} is taken, by the broker that runs or by another program: it is not asked")


async def _examine_broker(listener: Endpoint, cluster_id: str | None) -> list[Finding]:
    try:
        async with Cluster([listener.address], PATIENCE) as cluster:
            answer = await cluster.metadata([])
    except ClientError as error:
        hint = (
            "A broker of yours may be refusing connections: see its log. If it is another program, choose another port."
        )
        return [bad("listen", f"{listener} is taken, and no broker answers there ({error}). {hint}")]
    if cluster_id is None:
        whose = "whether it uses this store cannot be told, as the store cannot be asked"
        return [warn("listen", f"a broker answers at {listener}; {whose}"), *await _examine_advertised(answer)]
    if answer["cluster_id"] != cluster_id:
        whose = (
            f"cluster id {answer['cluster_id']}; this store's is {cluster_id}" if cluster_id else "none uses this one"
        )
        way_out = "Choose another port, or name the store of that broker."
        return [bad("listen", f"{listener} is taken by a broker with another store ({whose}). {way_out}")]
    return [good("listen", f"a broker answers at {listener}"), *await _examine_advertised(answer)]


async def _examine_advertised(answer: dict[str, Any]) -> list[Finding]:
    findings = []
    for broker in answer["brokers"]:
        address = Address(broker["host"], broker["port"])
        try:
            connection = await connect(address, PATIENCE)
        except ClientError as error:
            findings.append(bad("advertise", f"it sends clients to {address}, but {error}. Correct its --advertise."))
        else:
            await connection.close()
            findings.append(good("advertise", f"it sends clients to {address}, and that answers"))
    return findings


def examine_descriptors(connections: int) -> Finding:
    """Whether the process may open as many sockets as `max.connections` says, and files beside them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count_needed_files(connections)
    if hard != resource.RLIM_INFINITY and hard < needed:
        return warn(
            "files",
            f"this user may open {hard} files, and max.connections={connections} needs {needed}, with the segment "
            f"files; {RAISE_FILE_LIMIT} or lower max.connections.",
        )
    return good("files", f"enough file descriptors for max.connections={connections}")
