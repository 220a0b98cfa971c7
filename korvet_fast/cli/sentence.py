"""The sentence that a command fails with: printable, with one full stop, and a word like the mistyped one."""

import difflib
import re
from collections.abc import Iterable

import click

from korvet_fast.printable import printable

_ENDS = (".", "?", "!", "...")
# A full stop in front of another mark; paths and addresses have none like that.
_SECOND_STOP = re.compile(r"(?<=\w)\.(?=[.;,:](?:\s|$))")
_GUESSES = re.compile(r"\((Did you mean [^()]*\?)\)$")  # click's, a sentence of its own inside parentheses

# What people type who know other programs, and how it is called here.
_ELSEWHERE = {
    **dict.fromkeys(("start", "run", "broker"), "serve"),
    **dict.fromkeys(("new", "add", "make"), "create"),
    **dict.fromkeys(("remove", "rm"), "delete"),
    **dict.fromkeys(("show", "info", "get"), "describe"),
    **dict.fromkeys(("send", "write"), "produce"),
    **dict.fromkeys(("read", "tail"), "consume"),
    **dict.fromkeys(("status", "check"), "doctor"),
    "ls": "list",
    "update": "alter",
}
_MISTYPED = 0.7  # of two words, by difflib: below, they only share letters, as stop and topic


def sentence(text: str) -> str:
    """`text` as one line for a terminal, closed by one full stop if it has no end of its own.

    Reasons come from the system, from Redis and from brokers, some of them with a stop: two are made one.
    """
    line = _GUESSES.sub(r"\1", _SECOND_STOP.sub("", printable(" ".join(text.split()))))
    return line if line.endswith(_ENDS) else f"{line.rstrip(' ,;:')}."


def did_you_mean(word: str, known: Iterable[str], likeness: float = 0.5) -> str:
    """`; did you mean 'topic'?`, or nothing where no known word is as like it, from 0 to 1."""
    close = difflib.get_close_matches(word, sorted(known), 1, likeness)
    return f"; did you mean {close[0]!r}?" if close else ""


class Commands(click.Group):
    """A group of commands that knows what a mistyped one was meant to be."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            known = self.list_commands(ctx)
            meant = did_you_mean(_ELSEWHERE.get(word, word), known, _MISTYPED) or f"; there are {', '.join(known)}"
            raise click.UsageError(f"{ctx.command_path} has no command {word!r}{meant}", ctx)
        return super().resolve_command(ctx, args)
