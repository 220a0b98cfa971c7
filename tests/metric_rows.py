"""Prometheus's text format, read strictly: for tests of what is served."""

import http.client
import re
from typing import Final

ROW: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?[0-9.e+-]+|NaN)")
LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
_ESCAPED: Final = {r"\\": "\\", r"\"": '"', r"\n": "\n"}

_WITHIN: Final = 120.0  # seconds: a busy machine may take long

Key = tuple[str, tuple[tuple[str, str], ...]]  # a row's name, and its labels


def scrape(port: int) -> str:
    """What a broker with an HTTP listener at this port serves."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_WITHIN)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = answer.read().decode()
    connection.close()
    return text


def read_rows(text: str) -> dict[Key, float]:
    """All rows. Fails for a row that is there twice, or away from the others of its metric, or not announced."""
    rows: dict[Key, float] = {}
    finished, metric, summary = set(), "", False
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            finished.add(metric)
            metric = line.split(" ", 3)[2]
            assert metric not in finished, line
            continue
        if line.startswith("# TYPE "):
            assert line.split(" ")[2] == metric, line
            summary = line.endswith(" summary")
            continue
        found = ROW.fullmatch(line)
        assert found, line
        name = found[1]
        assert name == metric or (summary and name in (f"{metric}_sum", f"{metric}_count")), line
        labels = read_labels(found[2] or "")
        assert (name, labels) not in rows, line
        rows[name, labels] = float(found[3])
    return rows


def read_labels(text: str) -> tuple[tuple[str, str], ...]:
    """The labels of a row, unescaped."""
    labels, at = [], 0
    while at < len(text):
        found = LABEL.match(text, at)
        assert found, text
        labels.append((found[1], re.sub(r'\\["\\n]', lambda escape: _ESCAPED[escape[0]], found[2])))
        at = found.end()
    return tuple(labels)


def key(name: str, **labels: str) -> Key:
    """The key of a row."""
    return name, tuple(labels.items())
