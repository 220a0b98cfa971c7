"""`korvet-fast`, the command line. Each command is a module here with a `command`, imported only when it is called.

Exit codes: 0 done, 1 it failed, 2 it was asked for in a way that cannot be.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from korvet_fast.cli.output import OutputClosed, guard_streams
from korvet_fast.cli.sentence import Commands, sentence

COMMANDS = {
    "serve": "Run a broker.",
    "topic": "Create, list, describe, alter and delete topics.",
    "partition": "Name the leader of a partition.",
    "group": "List, describe, reset and delete consumer groups.",
    "produce": "Send lines to a topic.",
    "consume": "Print the records of a topic.",
    "cluster": "Show the brokers of a cluster.",
    "config": "List, describe and set the settings of brokers and topics.",
    "acl": "Add, list and remove ACLs, which say who may do what.",
    "ingest": "Load files into a topic, with Spark.",
    "export": "Write a topic to files, or follow it, with Spark.",
    "import-07": "Load a log directory of Kafka 0.7 into a store, positions kept.",
    "export-07": "Write topics of Kafka 0.7's format as a log directory of Kafka 0.7.",
    "demo-cluster": "Show three brokers that keep each other's copies, one of which is killed.",
    "doctor": "Check the store and the addresses, and say what acks=all survives.",
    "user": "Say who may log in on listeners kafka+sasl:// and kafka+sasl+tls://.",
    "certs": "Make a private authority and certificates for listeners with TLS.",
    "completion": "Print the script that lets a shell complete these commands.",
}


class _Commands(Commands):
    """Knows the names and first sentences by heart, so that neither --help nor one command imports the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"korvet_fast.cli.{cmd_name.replace('-', '_')}").command
        return command

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """Parse the arguments. Raises `click.UsageError` with one sentence."""
        with _sentences():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises `click.ClickException` with one sentence, or a line for each thing that failed."""
        with _sentences():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@contextmanager
def _sentences() -> Iterator[None]:
    try:
        yield
    except (OutputClosed, click.exceptions.NoArgsIsHelpError):
        raise
    except click.UsageError as error:
        raise click.UsageError(sentence(error.format_message()), error.ctx) from None
    except click.ClickException as error:
        raise click.ClickException("\n".join(map(sentence, error.message.split("\n")))) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="korvet-fast", message="korvet-fast %(version)s")
def root() -> None:
    """A broker for Kafka clients.

    \b
    Try it:
      korvet-fast serve                                    # the whole broker, on 127.0.0.1:9092
      korvet-fast topic create orders --partitions 4       # in another shell
      echo 'order-123 1 widget' | korvet-fast produce orders
      korvet-fast consume orders --from earliest --count 1

    `korvet-fast COMMAND --help` tells more.
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; ends the process as every click program does."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as `korvet_fast.__main__` leaves it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    guard_streams()
    return root(arguments, prog_name="korvet-fast")
