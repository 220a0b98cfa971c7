"""The log on standard error: a line for a person on a terminal, a line of JSON otherwise."""

import json
import logging
import sys
from datetime import UTC, datetime


class Human(logging.Formatter):
    """`12:30:01 warning  text`, and the traceback below it if there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(level)-8s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        record.level = record.levelname.lower()
        return super().format(record)


class JsonLines(logging.Formatter):
    """One object per record: time (UTC), level, logger, message, and traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def start_log() -> None:
    """Send everything from level INFO on to standard error, in the form that fits what it is connected to."""
    handler = logging.StreamHandler()
    handler.setFormatter(Human() if sys.stderr.isatty() else JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.raiseExceptions = False  # a closed standard error must not end the broker
