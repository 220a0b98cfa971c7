"""The bytes that have arrived at the other end of a loopback connection, and whether its program has read them.

Whoever writes bytes one by one does not thereby send them one by one: the loop, the kernel and the reader put together
what comes close behind each other. Only what is written when all that came before was read is read by itself.
"""

import asyncio
import os
import socket
import struct

# linux/sock_diag.h, linux/inet_diag.h and struct tcp_info of linux/tcp.h; see sock_diag(7).
NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLMSG_ERROR = 2
INET_DIAG_INFO = 2
HEADER, MESSAGE = 16, 72  # bytes of nlmsghdr and of inet_diag_msg
RQUEUE = HEADER + 4 + 48 + 4  # of the answer: behind family to retrans, id, expires
BYTES_RECEIVED = 128  # of tcp_info
GONE = (7, 10)  # states: closed; and a listener, which the kernel names where there is no connection any more

PATIENT = 100  # turns of the loop before it is left alone for a while


class ReceiveQueue:
    """The receive queue of the other end of a connection over IPv4 on this machine. `close` it."""

    def __init__(self, own_end: socket.socket) -> None:
        peer, own = own_end.getpeername(), own_end.getsockname()
        address = struct.pack(
            ">HH16s16sIQ", peer[1], own[1], socket.inet_aton(peer[0]), socket.inet_aton(own[0]), 0, (1 << 64) - 1
        )
        body = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0xFFFF_FFFF)
        size = HEADER + len(body) + len(address)
        self._question = struct.pack("=IHHII", size, SOCK_DIAG_BY_FAMILY, 1, 0, 0) + body + address
        self._kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)

    def look(self) -> tuple[int, int]:
        """Bytes that have arrived so far, and how many of them nobody has read. Raises `ConnectionResetError`."""
        self._kernel.send(self._question)
        answer = self._kernel.recv(1 << 16)
        size, kind = struct.unpack_from("=IH", answer)
        if kind == NLMSG_ERROR:
            code = -struct.unpack_from("=i", answer, HEADER)[0]
            raise ConnectionResetError(code, f"the other end is gone: {os.strerror(code)}")
        state, (unread,) = answer[HEADER + 1], struct.unpack_from("=I", answer, RQUEUE)
        at = HEADER + MESSAGE
        while state not in GONE and at < size:
            length, attribute = struct.unpack_from("=HH", answer, at)
            if attribute == INET_DIAG_INFO:
                return struct.unpack_from("=Q", answer, at + 4 + BYTES_RECEIVED)[0], unread
            at += (length + 3) & ~3
        raise ConnectionResetError(0, "the other end is gone")

    async def empty(self, total: int) -> None:
        """Until so many bytes have arrived since the connection began, and all are read."""
        turns = 0
        while self.look() != (total, 0):
            turns += 1
            await asyncio.sleep(0 if turns < PATIENT else 0.001)

    def close(self) -> None:
        self._kernel.close()
