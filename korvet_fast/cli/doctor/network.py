"""The addresses: can they be listened on, does a broker answer there already, can clients use what they are told."""

import asyncio
import errno
import resource
import socket

from korvet_fast.cli.address import Listener
from korvet_fast.cli.doctor.finding import Finding, bad, good, warn
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.connection import ClientError, connect
from korvet_fast.endpoint import Endpoint

PATIENCE = 3.0  # seconds for whoever should answer
FILES_BESIDE = 1024  # descriptors for segment files


async def examine_address(listener: Listener, told: Listener | None) -> list[Finding]:
    """Look at one address to listen on, and at what its clients are told."""
    try:
        free = _bind(listener)
    except OSError as error:
        return [bad("listen", f"{listener} cannot be listened on: {error.strerror}")]
    if not free:
        return await _examine_broker(listener)
    findings = [good("listen", f"{listener} is free")]
    loopback = ("127.", "::1", "localhost")
    if listener.host.startswith(loopback):
        findings.append(good("listen", "only programs on this machine can connect there"))
    if told is not None:
        if told.host.startswith(loopback) and not listener.host.startswith(loopback):
            findings.append(warn("advertise", f"{told} leads a client on another machine to that machine itself"))
        findings.append(await _examine_name(told))
    return findings


def _bind(listener: Listener) -> bool:
    """Whether the address is free; an `OSError` if it can never be listened on here."""
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


async def _examine_name(told: Listener) -> Finding:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(told.host, told.port, type=socket.SOCK_STREAM)
    except OSError as error:
        return bad("advertise", f"{told}: the name is unknown here ({error.strerror}), perhaps to clients too")
    addresses = sorted({str(row[4][0]) for row in found})
    return good("advertise", f"{told} is {', '.join(addresses)}")


async def _examine_broker(listener: Listener) -> list[Finding]:
    try:
        async with Cluster([Endpoint(listener.host, listener.port)], PATIENCE) as cluster:
            answer = await cluster.metadata([])
    except ClientError as error:
        return [bad("listen", f"{listener} is taken by a program that is no broker ({error}). Choose another port.")]
    findings = [good("listen", f"a broker answers at {listener}")]
    for broker in answer["brokers"]:
        endpoint = Endpoint(broker["host"], broker["port"])
        try:
            connection = await connect(endpoint, PATIENCE)
        except ClientError as error:
            findings.append(bad("advertise", f"it sends clients to {endpoint}, but {error}. Correct its --advertise."))
        else:
            await connection.close()
            findings.append(good("advertise", f"it sends clients to {endpoint}, and that answers"))
    return findings


def examine_descriptors(connections: int) -> Finding:
    """Whether the process may open as many sockets as `max.connections` says, and files beside them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < connections + FILES_BESIDE:
        return warn(
            "files",
            f"this user may open {hard} files, fewer than max.connections={connections} and the segment files need; "
            "raise `ulimit -Hn` or lower max.connections.",
        )
    return good("files", f"enough file descriptors for max.connections={connections}")
