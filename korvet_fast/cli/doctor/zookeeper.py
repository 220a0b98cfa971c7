"""Whether the ZooKeeper of `--zookeeper` answers, and whether the broker's id is free there."""

import asyncio

from korvet_fast.cli.doctor.finding import Finding, good, warn
from korvet_fast.config import Settings
from korvet_fast.zookeeper.connect_string import ConnectString
from korvet_fast.zookeeper.nodes import broker_path
from korvet_fast.zookeeper.session import ZooKeeperError, ZooKeeperSession

SUBJECT = "zookeeper"


async def examine_zookeeper(where: ConnectString, settings: Settings) -> Finding:
    """Look, and change nothing: a broker serves without ZooKeeper, but clients of Kafka 0.7 do not find it."""
    changed = asyncio.Event()
    session = ZooKeeperSession(where.hosts, settings.number("zookeeper.session.timeout.ms"), changed.set)
    session.start()
    try:
        async with asyncio.timeout(settings.number("zookeeper.connection.timeout.ms") / 1000):
            while not session.connected:
                changed.clear()
                await changed.wait()
            found = await session.read(where.chroot + broker_path(settings.number("node.id")))
    except TimeoutError:
        return warn(SUBJECT, f"{where} cannot be reached: clients of Kafka 0.7 would not find this broker")
    except ZooKeeperError as error:
        return warn(SUBJECT, f"{where} refused a call: {error}")
    finally:
        await session.close()
    if found is not None:
        other = found.value.decode(errors="replace")
        return warn(SUBJECT, f"at {where} broker id {settings.number('node.id')} is taken, by {other}")
    return good(SUBJECT, f"{where} answers")
