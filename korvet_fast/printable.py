"""Text from elsewhere, made fit for a terminal, a log or a table: one line, and nothing that a terminal obeys."""

import json


def printable(text: str) -> str:
    r"""`text` with controls, line ends, marks of text direction and lone surrogates as `\n`, `\x1b`, `\u202e`.

    What `str.isprintable` calls printable stays, backslashes too.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def to_json(value: object, indent: int | None = None) -> str:
    r"""`value` as JSON: the same to a program, and whatever is not printable in its strings is written `\u001b`."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    # JSON itself leaves no unprintable characters inside strings, and outside only line ends.
    return "\n".join(line if line.isprintable() else _escape(line) for line in text.split("\n"))


def _escape(line: str) -> str:
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in line)
