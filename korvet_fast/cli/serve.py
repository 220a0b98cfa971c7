"""`korvet-fast serve`: the whole broker in one process."""

import errno
import logging
import sys

import click
import uvloop

from korvet_fast._native import allocate_small_objects
from korvet_fast.cli.broker_options import BrokerOptions, broker_options
from korvet_fast.cli.exposure import find_exposures
from korvet_fast.cli.family_lock import WorkerIdentity, family_lock
from korvet_fast.cli.log import start_log
from korvet_fast.cli.memory import keep_freed
from korvet_fast.cli.open_files import raise_file_limit
from korvet_fast.cli.registration import make_registration
from korvet_fast.cli.replication import make_replication
from korvet_fast.cli.store import make_store
from korvet_fast.cli.worker_options import make_worker_options, worker_options
from korvet_fast.cli.workers import Companion, Parent
from korvet_fast.core.broker import Broker
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError, StoreError, TooFewThreads
from korvet_fast.net.listeners import Listener
from korvet_fast.net.serve import serve
from korvet_fast.store.embedded.unreadable import ADVICE

log = logging.getLogger("korvet_fast")


@click.command()
@worker_options
@broker_options
def command(options: BrokerOptions, workers: int | None, worker_ports: range | None) -> None:
    """Run a broker: Kafka on 127.0.0.1:9092, the records in ./korvet-data, unless told otherwise.

    It logs `ready kafka://HOST:PORT store=...` when clients may connect. SIGTERM or Ctrl-C lets it finish what is
    under way, flush and exit; a second one ends it at once.

    \b
    Examples:
      korvet-fast serve
      korvet-fast serve --store file:/var/lib/korvet --set num.partitions=4 --set log.retention.ms=86400000
      korvet-fast serve --workers auto
      korvet-fast serve --listen kafka://0.0.0.0:9092 --advertise kafka://broker.example.org:9092
      korvet-fast serve --store redis://localhost:6379
      KORVET_STORE=redis://user:password@redis.example.org:6379 korvet-fast serve
      KORVET_NUM_PARTITIONS=4 korvet-fast serve --config-file korvet.toml

    Settings have Kafka's names. A flag wins over the environment, that over the file, that over the default.
    """
    start_log(options.settings.text("log.level"))
    plans = make_worker_options(options, workers, worker_ports)
    raise_file_limit(len(options.listeners), len(plans))
    if len(plans) == 1:
        _serve(options)
        return
    with family_lock(plans[0].place) as locks:
        parent = Parent(
            plans,
            lambda worker, companion: _serve(worker.options, WorkerIdentity(worker.number, locks), companion),
        )
        sys.exit(parent.run())


def _serve(options: BrokerOptions, worker: WorkerIdentity | None = None, companion: Companion | None = None) -> None:
    """Be a broker until it is told to end; with `companion` one of several workers. Raises `click.ClickException`."""
    settings, exposures = options.settings, list(find_exposures(options))
    keep_freed()
    allocate_small_objects()
    listeners = list(map(Listener, options.listeners, options.advertised))

    def ready(endpoints: list[Endpoint]) -> None:
        check()
        for endpoint in endpoints:
            log.info("ready %s store=%s", endpoint, options.store)
        for exposure in exposures:
            log.warning("%s", exposure.sentence)
        if companion is not None:
            companion.life.note_ready()

    async def run() -> None:
        stop = companion.begin() if companion is not None else None
        await serve(broker, listeners, ready, registration, stop)

    try:
        replication = make_replication(options)
        store, check = make_store(options.place, settings, replication, worker)
        broker = Broker(store, settings, replication=replication)
        registration = make_registration(broker, options.zookeeper) if options.zookeeper is not None else None
        uvloop.run(run())
    except StoreError as error:
        raise click.ClickException(error.detail) from None
    except (SettingError, TooFewThreads) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise click.ClickException(f"{error.strerror}: {ADVICE[error.errno]}") from None
        # `serve` names the address; any other OSError would be a bug of ours, and keeps its traceback.
        schemes = {str(listener.address): listener.scheme for listener in options.listeners}
        if error.filename not in schemes:
            raise
        taken = "Is a broker running there already? " if error.errno == errno.EADDRINUSE else ""
        what = "port" if taken else "address"
        choice = f"Another {what} is chosen with --listen {schemes[error.filename]}://HOST:PORT."
        if taken and worker is not None and worker.number > 1:
            choice = f"It is worker {worker.number}'s: other ports are chosen with --worker-ports FIRST-LAST."
        raise click.ClickException(f"cannot listen on {error.filename}: {error.strerror}. {taken}{choice}") from None
