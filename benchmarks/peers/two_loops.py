"""Two brokers in one process, a thread and a loop for each, which share the interpreter's lock. Run with two ports."""

import asyncio
import socket
import sys
from pathlib import Path
from threading import Thread

import uvloop

from korvet_fast.cli.memory import keep_freed
from korvet_fast.config import Settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.types import Address
from korvet_fast.net.limits import read_limits
from korvet_fast.net.server import BACKLOG, Server
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.wire.kafka.dialect import KafkaDialect


async def serve(port: int) -> None:
    """A broker over files in a directory called like its port, until the process ends."""
    broker = Broker(EmbeddedStore(Path(str(port))), Settings({}))
    listener = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    listener.setblocking(False)
    await broker.open([Address("127.0.0.1", port)])
    Server(*read_limits(broker.settings)).listen(listener, KafkaDialect(broker, 0))
    await asyncio.Event().wait()


if __name__ == "__main__":
    keep_freed()
    threads = [Thread(target=uvloop.run, args=(serve(int(port)),)) for port in sys.argv[1:]]
    for thread in threads:
        thread.start()
    for thread in threads:  # an interpreter whose main thread ends takes no more work
        thread.join()
