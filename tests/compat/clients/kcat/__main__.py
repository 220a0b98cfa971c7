"""The driver of kcat: librdkafka on the command line, a process for each command."""

from compat.clients.kcat.commands import Client
from compat.clients.lines import Options, Unsupported, drive


def run(asked: Options) -> None:
    raise Unsupported("kcat commits what it read when it likes, and does not say so")


drive(Client, run, repr)
