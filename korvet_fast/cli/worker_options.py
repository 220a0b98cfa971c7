"""`--workers` and `--worker-ports`: the options of each worker, made from those of one broker."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from korvet_fast.cli.broker_options import BrokerOptions
from korvet_fast.cli.cores import count_cores
from korvet_fast.endpoint import Endpoint

MOST = 256  # workers
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


def parse_count(text: str) -> int | None:
    """Read `4`, or `auto`: None. Raises `click.BadParameter`."""
    if text == "auto":
        return None
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        raise click.BadParameter(f"{text!r} is not a number from 1 to {MOST}, and not auto")
    return int(text)


def choose_count() -> int:
    """How many workers `auto` is here: as many as this process may use cores."""
    return min(count_cores(), MOST)


def parse_ports(text: str) -> range:
    """Read `9100-9131`, or one port. Raises `click.BadParameter`."""
    found = _PORTS.fullmatch(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found is not None else (0, 0)
    if not 1 <= first <= last <= 65535:
        raise click.BadParameter(f"{text!r} should be ports such as 9100-9131")
    return range(first, last + 1)


def worker_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command --workers (None: auto) and --worker-ports; `function` gets them as `workers`, `worker_ports`."""
    options = (
        click.option(
            "--workers",
            type=parse_count,
            default="1",
            show_default=True,
            metavar="N|auto",
            help="Processes that serve one data directory, each a broker of one cluster; auto: one for each core.",
        ),
        click.option(
            "--worker-ports",
            type=parse_ports,
            metavar="FIRST-LAST",
            help="The ports of all workers but the first, for each of their listeners in turn. Left out, a worker has "
            "the ports above those of the one before.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def make_worker_options(options: BrokerOptions, workers: int | None, ports: range | None) -> list[BrokerOptions]:
    """The options of each worker (`workers`: how many, None: auto), or of the one broker.

    Raises `click.UsageError` where they cannot be workers.
    """
    if workers == 1 and ports is not None:
        raise click.UsageError("--worker-ports is for --workers 2 and more")
    count = choose_count() if workers is None else workers
    if count == 1:
        return [options]
    if not isinstance(options.place, Path):
        raise click.UsageError(
            f"--workers {count} is for files: over Redis, start {count} brokers with the same --store instead"
        )
    if options.settings.text("replication.peers"):
        raise click.UsageError(
            f"--workers {count} does not go with replication.peers: brokers that copy files have one process each"
        )
    needed = (count - 1) * len(options.listeners)
    if ports is not None and len(ports) < needed:
        raise click.UsageError(f"--worker-ports has {len(ports)} ports, and {needed} are needed")
    given = iter(ports) if ports is not None else None
    made = [_make_one(options, number, given) for number in range(count)]
    _check_ports(made)
    return made


def _make_one(options: BrokerOptions, number: int, ports: Iterator[int] | None) -> BrokerOptions:
    listeners, advertised = [], []
    for listener, told in zip(options.listeners, options.advertised, strict=True):
        port = next(ports) if ports is not None and number else None
        listeners.append(_move(listener, number, port))
        advertised.append(None if told is None else _move(told, number, port))
    settings = options.settings
    own = settings.replace("node.id", settings.number("node.id") + number)
    return options._replace(listeners=tuple(listeners), advertised=tuple(advertised), settings=own)


def _move(endpoint: Endpoint, number: int, port: int | None) -> Endpoint:
    """The endpoint of the worker `number` (from 0), with this port or one so much above the first worker's."""
    if number == 0 or (endpoint.port == 0 and port is None):
        return endpoint
    moved = endpoint.port + number if port is None else port
    if moved > 65535:
        raise click.UsageError(f"worker {number + 1} would have the port {moved}: choose others with --worker-ports")
    return endpoint._replace(port=moved)


def _check_ports(made: list[BrokerOptions]) -> None:
    """Raises `click.UsageError` if two listeners would have one port."""
    taken: dict[tuple[str, int], str] = {}
    for number, options in enumerate(made, 1):
        for listener in options.listeners:
            place = listener.host, listener.port
            before = taken.setdefault(place, f"{listener} of worker {number}")
            if listener.port and before != f"{listener} of worker {number}":
                raise click.UsageError(
                    f"{listener} of worker {number} has the port of {before}: choose others with --worker-ports"
                )
