"""`korvet-fast serve`: the whole broker in one process."""

import errno
import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import uvloop

from korvet_fast.cli.broker_options import BrokerOptions, broker_options
from korvet_fast.cli.exposure import find_exposures
from korvet_fast.cli.log import start_log
from korvet_fast.cli.memory import keep_freed
from korvet_fast.cli.registration import make_registration
from korvet_fast.core.broker import Broker
from korvet_fast.core.replication.replication import Replication
from korvet_fast.core.replication.static_peers import StaticPeers, read_static_peers
from korvet_fast.core.replication.store import ReplicatedStore
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError, StoreError
from korvet_fast.net.listeners import Listener
from korvet_fast.net.serve import serve
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import Store
from korvet_fast.wire.dialects import PEERS

log = logging.getLogger("korvet_fast")


@click.command()
@broker_options
def command(options: BrokerOptions) -> None:
    """Run a broker: Kafka on 127.0.0.1:9092, the records in ./korvet-data, unless told otherwise.

    It logs `ready kafka://HOST:PORT store=...` when clients may connect. SIGTERM or Ctrl-C lets it finish what is
    under way, flush and exit; a second one ends it at once.

    \b
    Examples:
      korvet-fast serve
      korvet-fast serve --store file:/var/lib/korvet --set num.partitions=4 --set log.retention.ms=86400000
      korvet-fast serve --listen kafka://0.0.0.0:9092 --advertise kafka://broker.example.org:9092
      korvet-fast serve --store redis://localhost:6379
      KORVET_STORE=redis://user:password@redis.example.org:6379 korvet-fast serve
      KORVET_NUM_PARTITIONS=4 korvet-fast serve --config korvet.toml

    Settings have Kafka's names. A flag wins over the environment, that over the file, that over the default.
    """
    start_log()
    keep_freed()
    settings = options.settings
    exposures = list(find_exposures(options))
    listeners = list(map(Listener, options.listeners, options.advertised))

    def ready(endpoints: list[Endpoint]) -> None:
        made.check()
        for endpoint in endpoints:
            log.info("ready %s store=%s", endpoint, options.store)
        for exposure in exposures:
            log.warning("%s", exposure.sentence)

    try:
        made = _make_store(options)
        broker = Broker(made.store, settings, replication=made.replication)
        registration = make_registration(broker, options.zookeeper) if options.zookeeper is not None else None
        uvloop.run(serve(broker, listeners, ready, registration))
    except StoreError as error:
        raise click.ClickException(error.detail) from None
    except SettingError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        # `serve` names the address; any other OSError would be a bug of ours, and keeps its traceback.
        if error.filename is None:
            raise
        taken = "Is a broker running there already? " if error.errno == errno.EADDRINUSE else ""
        what = "port" if taken else "address"
        raise click.ClickException(
            f"cannot listen on {error.filename}: {error.strerror}. {taken}"
            f"Another {what} is chosen with --listen kafka://HOST:PORT."
        ) from None


class _Made(NamedTuple):
    """`check`: for when the store is open; it logs what the store promises, or raises `StoreError`."""

    store: Store
    check: Callable[[], None]
    replication: Replication | None = None


def _make_store(options: BrokerOptions) -> _Made:
    """Make the store. Raises `SettingError`."""
    settings = options.settings
    static = read_static_peers(settings)
    _check_listeners(options, static)
    sync, copies = settings.text("durability") == "fsync", settings.number("min.insync.replicas")
    if isinstance(options.place, Path):
        interval = settings.number("log.index.interval.bytes")
        files = EmbeddedStore(options.place, index_interval_bytes=interval)

        def check_copies() -> None:
            if why := store.durability_error(None, sync, copies):
                log.warning("%s", why)

        if static is None:
            store: Store = files
            return _Made(store, check_copies)
        from korvet_fast.client.replica_peers import ReplicaPeers  # the client is a tenth of a second to import

        replication = Replication(static, files, ReplicaPeers(static), settings)
        store = ReplicatedStore(replication)
        return _Made(store, check_copies, replication)
    from korvet_fast.store.redis.store import RedisStore  # redis-py takes a fifth of a second to import

    redis = RedisStore(options.place)

    def check() -> None:
        # Replicas come and go: they are asked for when something is written. What the server is set to must hold now.
        if why := redis.durability.durability_error(None, sync, copies=1):
            raise StoreError(why)
        for line in redis.durability.explain(sync, copies):
            log.info("%s", line)

    return _Made(redis, check)


def _check_listeners(options: BrokerOptions, static: StaticPeers | None) -> None:
    """Raises `SettingError` where the listeners, the store and replication.peers do not belong together."""
    peers = [endpoint for endpoint in options.listeners if endpoint.scheme == PEERS]
    if static is None:
        if peers:
            raise SettingError(f"--listen {peers[0]} is for replication.peers, and none are set")
        return
    if not isinstance(options.place, Path):
        raise SettingError(
            "replication.peers are for brokers over files; a Redis makes copies of its own: leave them out"
        )
    if len(peers) != 1:
        raise SettingError(
            f"replication.peers is set, so the other brokers need a listener: --listen {PEERS}://{static.addresses[static.own]}"
        )
