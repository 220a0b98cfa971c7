"""The log on standard error: a line for a person on a terminal, a line of JSON otherwise."""

import logging
import sys
from datetime import UTC, datetime

from korvet_fast.printable import printable, to_json

INDENT = "    "  # in front of a traceback's lines: none can be taken for a line of the log


class Human(logging.Formatter):
    """`12:30:01 warning  text`, and the traceback below it, indented, if there is one. All of it is printable.

    The text of a worker begins with `worker 2: `.
    """

    def format(self, record: logging.LogRecord) -> str:
        time = self.formatTime(record, "%H:%M:%S")
        worker = _name_worker(record)
        who = f"{worker}: " if worker else ""
        lines = [f"{time} {record.levelname.lower():8} {who}{printable(record.getMessage())}"]
        if record.exc_info:
            lines += [INDENT + printable(line) for line in self.formatException(record.exc_info).split("\n")]
        return "\n".join(lines)


class JsonLines(logging.Formatter):
    """One object per record: time (UTC), level, logger, message; process, if it is a worker's; traceback, if any."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if worker := _name_worker(record):
            line["process"] = worker
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return to_json(line)


def _name_worker(record: logging.LogRecord) -> str:
    """`worker 2`, as the parent of the workers has named the process; "" where there is one process only."""
    name = record.processName or ""
    return name if name.startswith("worker ") else ""


def start_log(level: str) -> None:
    """Send everything from `log.level` on to standard error, as text for a terminal and as JSON for anything else."""
    handler = logging.StreamHandler()
    handler.setFormatter(Human() if sys.stderr.isatty() else JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.raiseExceptions = False  # a closed standard error must not end the broker
