"""Shared by `ingest` and `export`: options, a Spark session with errors as sentences, progress, the summary."""

import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from korvet_fast.cli.assignment import split_assignments
from korvet_fast.cli.session import Bootstrap, count
from korvet_fast.cli.spark_bar import waiting_bar
from korvet_fast.cli.spark_java import running_java
from korvet_fast.printable import printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

F = TypeVar("F", bound=Callable[..., Any])

OURS = re.compile(r"korvet_fast\.[\w.]+: (.+)$", re.MULTILINE)
JAVA = re.compile(r"^: [\w.$]+: (.+)$", re.MULTILINE)  # the first line of a Java exception
RAISED = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception): .+$", re.MULTILINE)  # the last line of a Python traceback
TRACEBACK = "Traceback (most recent call last):"
STATE = re.compile(r" SQLSTATE: \w+$")
CODE = re.compile(r"^\[[\w.]+\] ")


def pairs(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Parse any number of NAME=VALUE; the last of a name counts. Raises `click.BadParameter`."""
    return dict(split_assignments(given, ": write it as NAME=VALUE"))


def spark_options(function: F) -> F:
    """Add the options `--master` and `--conf` to a command."""
    master = click.option(
        "--master",
        metavar="URL",
        default="local[*]",
        show_default=True,
        help="The Spark to run on, as for spark-submit.",
    )
    conf = click.option(
        "--conf",
        multiple=True,
        metavar="NAME=VALUE",
        callback=pairs,
        help="A setting of Spark, for example spark.driver.memory=4g. May be given more than once.",
    )
    return master(conf(function))


def broker_options(bootstrap: Bootstrap) -> dict[str, str]:
    """Which brokers, and how they are connected to, as options of the data source."""
    security = {f"kafka.{name}": value for name, value in bootstrap.security.items()}
    return {"kafka.bootstrap.servers": str(bootstrap), **security}


def reads_here(master: str, conf: Mapping[str, str]) -> bool:
    """Whether Spark takes the name of a file without a scheme for one of this machine."""
    elsewhere = "HADOOP_CONF_DIR" in os.environ or "spark.hadoop.fs.defaultFS" in conf
    return master.startswith("local") and not elsewhere


def import_jobs() -> Any:
    """Import `korvet_fast.spark.jobs`. Raises `ClickException` with a sentence if Spark is not installed."""
    try:
        from korvet_fast.spark import jobs
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("pyspark", "pyarrow"):
            raise
        raise click.ClickException(
            f"{missing} is not installed here, and Spark does this: pip install 'korvet-fast[spark]'"
        ) from None
    return jobs


@contextmanager
def spark_session(name: str, master: str, settings: Mapping[str, str], *, short: bool) -> Iterator["SparkSession"]:
    """A session that ends with the block. SIGTERM acts as Ctrl-C. An error in the block gives exit code 1.

    `short`: there is little to do in it.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from korvet_fast.client.protocol.errors import ClientError
    from korvet_fast.errors import SettingError

    jobs = import_jobs()
    click.echo(f"Spark starts ({printable(master)}), which takes some seconds", err=True)
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        conf = jobs.session_settings(name, master, settings, short=short)
        with ExitStack() as ending:
            with waiting_bar("Spark starts"):
                ending.enter_context(running_java(conf))
                spark = jobs.open_session(conf, settings)
            ending.callback(spark.stop)
            yield spark
    except (PySparkException, Py4JError, SettingError, ClientError) as error:
        # The interrupt broke off a call into Java, so the next call has failed.
        if isinstance(error.__context__, KeyboardInterrupt):
            raise click.Abort from None
        raise click.ClickException(explain(error)) from None
    except KeyboardInterrupt:
        raise click.Abort from None
    finally:
        signal.signal(signal.SIGTERM, previous)


def explain(error: Exception) -> str:
    """The sentence inside an error of Spark: ours if it has one, otherwise the first line of Spark's own."""
    text = str(error)
    if "JAVA_GATEWAY_EXITED" in text:
        return "Spark did not start: it needs Java 17 or newer, as `java` on the path or in JAVA_HOME"
    ours = OURS.findall(text)
    if ours:
        return str(ours[-1])
    first = JAVA.search(text)
    sentence = CODE.sub("", STATE.sub("", first[1] if first else text.strip().splitlines()[0]))
    raised = RAISED.findall(text) if sentence.endswith(TRACEBACK) else []
    return sentence.removesuffix(TRACEBACK) + raised[-1] if raised else sentence


def summary(rows: int, size: int, seconds: float, where: str) -> str:
    """A line such as `1,000 rows (1.2 MB) to topic orders in 2.0 s: 500 rows/s`; no rate below a row a second."""
    rate = rows / max(seconds, 1e-9)
    done = f"{count(rows, 'row')} ({size / 1e6:,.1f} MB) {printable(where)} in {seconds:,.1f} s"
    return f"{done}: {rate:,.0f} rows/s" if rate >= 1 else done


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt
