"""The store that a command's options name: for `serve`, and for commands that work on one while no broker runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
import uvloop

from korvet_fast.cli.broker_options import read_store, settings_options, store_option
from korvet_fast.cli.family_lock import WorkerIdentity
from korvet_fast.config import Settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.replication.replication import Replication
from korvet_fast.core.replication.store import ReplicatedStore
from korvet_fast.errors import KorvetError, SettingError, StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import Store
from korvet_fast.store.redis.connection.url import RedisUrl
from korvet_fast.store.workers.store import WorkerStore

log = logging.getLogger("korvet_fast")

_LOOK: Final = 100  # ms between two looks at whether another broker is registered

Offline: TypeAlias = tuple[Path | RedisUrl, Settings]  # a store that no broker has, and the settings


def make_files(directory: Path, settings: Settings) -> EmbeddedStore:
    """Make the store of files in a directory."""
    return EmbeddedStore(directory, index_interval_bytes=settings.number("log.index.interval.bytes"))


def make_store(
    place: Path | RedisUrl,
    settings: Settings,
    replication: Replication | None = None,
    worker: WorkerIdentity | None = None,
) -> tuple[Store, Callable[[], None]]:
    """Make the store, and a check for when it is open, which logs what it promises or raises `StoreError`.

    `replication`: of the files, where brokers keep copies of each other's. `worker`: this one, where several have
    the files.
    """
    sync, copies = settings.text("durability") == "fsync", settings.number("min.insync.replicas")
    if isinstance(place, Path):
        files: Store
        if worker is not None:
            files = WorkerStore(place, *worker, index_interval_bytes=settings.number("log.index.interval.bytes"))
        else:
            files = make_files(place, settings) if replication is None else ReplicatedStore(replication)

        def check_copies() -> None:
            if why := files.durability_error(None, sync, copies):
                log.warning("%s", why)

        return files, check_copies
    from korvet_fast.store.redis.store import RedisStore  # redis-py takes a fifth of a second to import

    store = RedisStore(place)

    def check() -> None:
        # Replicas come and go: they are asked for when something is written. What the server is set to must hold now.
        if why := store.durability.durability_error(None, sync, copies=1):
            raise StoreError(why)
        for line, survives_restart in store.durability.explain(sync, copies):
            log.log(logging.INFO if survives_restart else logging.WARNING, "%s", line)

    return store, check


def offline_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command --store, --config-file and --set; `function` gets them as `offline`, an `Offline`."""

    def command(store: str, config_file: Path | None, flags: tuple[str, ...], **given: Any) -> None:
        _, place, settings = read_store(store, config_file, flags)
        function(offline=(place, settings), **given)

    command.__doc__ = function.__doc__
    command.__dict__.update(function.__dict__)  # the arguments and options it has
    for option in reversed((store_option, *settings_options)):
        command = option(command)
    return command


def run_offline(offline: Offline, work: Callable[[Broker], Awaitable[None]]) -> None:
    """Open the store as a broker does, run `work`, close it. Raises `click.ClickException`, also if a broker runs."""
    place, settings = offline
    if settings.text("replication.peers"):
        raise click.ClickException(
            "brokers with replication.peers keep one another's files: start them, and do it there"
        )
    store, _ = make_store(place, settings)

    async def opened() -> None:
        broker = Broker(store, settings)
        await broker.open()
        try:
            await _wait_alone(broker)
            if not broker.cluster.alone:
                raise click.ClickException(
                    f"brokers are running over {place}: stop them, run this, and start them again"
                )
            await work(broker)
        finally:
            await broker.leave()
            await broker.close()

    try:
        uvloop.run(opened())
    except (StoreError, KorvetError) as error:
        raise click.ClickException(error.detail) from None
    except SettingError as error:
        raise click.ClickException(str(error)) from None


async def _wait_alone(broker: Broker) -> None:
    """Give a broker or a command that was killed the time to be forgotten: a session, and a heartbeat.

    Then this one leads what the other led.
    """
    most = sum(map(broker.settings.number, ("broker.session.timeout.ms", "broker.heartbeat.interval.ms")))
    for _ in range(most // _LOOK):
        if broker.cluster.alone:
            await broker.metadata_sync.wait()
            return
        await asyncio.sleep(_LOOK / 1000)
