"""The sentence that a command fails with: printable, with one full stop, and what was meant by a mistyped word."""

import difflib
import re
from collections.abc import Iterable

import click

from korvet_fast.printable import printable

_ENDS = (".", "?", "!", "...")
_SECOND_STOP = re.compile(
    r"(?<=\w)\.(?=[.;,:](?:\s|$))"
)  # in front of another; paths and addresses have none like that


def sentence(text: str) -> str:
    """`text` as one line for a terminal, closed by one full stop if it has no end of its own.

    Reasons come from the system, from Redis and from brokers, some of them with a stop: two are made one.
    """
    line = _SECOND_STOP.sub("", printable(" ".join(text.split())))
    return line if line.endswith(_ENDS) else f"{line.rstrip(' ,;:')}."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'topic'?`, or nothing where no known word is like it."""
    close = difflib.get_close_matches(word, sorted(known), 1, 0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


class Commands(click.Group):
    """A group of commands that knows what a mistyped one was meant to be."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            known = self.list_commands(ctx)
            meant = did_you_mean(word, known) or f"; there are {', '.join(known)}"
            raise click.UsageError(f"{ctx.command_path} has no command {word!r}{meant}", ctx)
        return super().resolve_command(ctx, args)
