"""Kafka's BROKER_LOGGER resource (KIP-412): the levels of this broker's loggers, by name, changed while it runs.

`korvet_fast` is the one above all others. A logger without a level of its own has that of the one above; the topmost
has the setting `log.level`. Changed with IncrementalAlterConfigs only, as in Kafka.
"""

import logging
from collections.abc import Iterable
from typing import Final

from korvet_fast.config_def import Kind, explain_unknown
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.api.config_entries import KINDS
from korvet_fast.wire.kafka.session import Values

BROKER_LOGGER: Final = 8
_ROOT: Final = "korvet_fast"
# Kafka's names (LogLevelConfig.java), and Python's.
_LEVELS: Final = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_SHOWN: Final = {level: name for name, level in _LEVELS.items() if name not in ("TRACE", "WARNING")}
_OWN, _INHERITED = 6, 5  # config_source: DYNAMIC_BROKER_LOGGER_CONFIG, and DEFAULT_CONFIG
_SET, _DELETE = 0, 1

_log = logging.getLogger(__name__)


def describe_loggers() -> list[Values]:
    """The rows of DescribeConfigs, one for each logger."""
    return [
        {
            "name": name,
            "value": _SHOWN.get(logger.getEffectiveLevel(), str(logger.getEffectiveLevel())),
            "config_source": _INHERITED if logger.level == logging.NOTSET else _OWN,
            "config_type": KINDS[Kind.STRING],
            "documentation": "The least level of the lines that this logger writes.",
        }
        for name, logger in sorted(_find_loggers().items())
    ]


def alter_loggers(configs: Iterable[Values], *, validate_only: bool) -> None:
    """Set levels, or take them away: all or none. Raises `KorvetError` INVALID_CONFIG or INVALID_REQUEST."""
    loggers = _find_loggers()
    changes = [(config["name"], _read_level(config, loggers.keys())) for config in configs]
    for name, level in () if validate_only else changes:
        loggers[name].setLevel(level)
        shown = _SHOWN.get(level, "that of the logger above")
        _log.warning("the level of logger %s is now %s: a client set it", name, shown)


def _find_loggers() -> dict[str, logging.Logger]:
    known = logging.root.manager.loggerDict
    names = [name for name, found in known.items() if isinstance(found, logging.Logger)]
    return {name: logging.getLogger(name) for name in [_ROOT, *names] if (name + ".").startswith(_ROOT + ".")}


def _read_level(config: Values, known: Iterable[str]) -> int:
    name, operation, value = config["name"], config["config_operation"], config["value"]
    if name not in known:
        raise KorvetError(Errors.INVALID_CONFIG, f"there is no logger {explain_unknown(name, known)}")
    if operation == _DELETE:
        return logging.NOTSET
    level = _LEVELS.get((value or "").upper())
    if operation != _SET:
        raise KorvetError(Errors.INVALID_REQUEST, f"{name}: a level can be set and deleted only")
    if level is None:
        names = ", ".join(_LEVELS).lower()
        raise KorvetError(Errors.INVALID_CONFIG, f"{name} is {(value or '')[:80]!r}, but must be one of {names}")
    return level
