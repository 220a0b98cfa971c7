"""The results of the doctor's checks: each is good, a warning or a failure."""

from enum import Enum
from typing import NamedTuple


class Verdict(Enum):
    """Only `BAD` makes doctor's exit code 1: a broker could not start, or would not keep what it promises."""

    GOOD = "ok"
    WARN = "warn"
    BAD = "bad"


class Finding(NamedTuple):
    """One thing looked at, and a sentence that says what to do if it is not good."""

    verdict: Verdict
    subject: str
    sentence: str


def good(subject: str, sentence: str) -> Finding:
    """Nothing to do."""
    return Finding(Verdict.GOOD, subject, sentence)


def warn(subject: str, sentence: str) -> Finding:
    """A finding about a part that works, which the operator should know."""
    return Finding(Verdict.WARN, subject, sentence)


def bad(subject: str, sentence: str) -> Finding:
    """A finding about a part that does not work."""
    return Finding(Verdict.BAD, subject, sentence)
