"""The settings in force, read once at the start; `config_def` has the table of all there are.

A setting is taken from the first of: flag (`--set name=value`), environment (`KORVET_NUM_PARTITIONS` for
`num.partitions`), TOML file (dotted, quoted or nested names), default.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple

from korvet_fast.config_def import SETTINGS, Setting, Value, explain_unknown, show
from korvet_fast.config_legacy import MAPPED, NEAREST, translate
from korvet_fast.errors import SettingError

# Not ours, though they begin with KORVET_: the test suite's, and what Kubernetes sets in every container for a Service
# whose name begins so (korvet, korvet-fast, korvet-redis): https://kubernetes.io/docs/concepts/services-networking/service/
_FOREIGN = re.compile(
    r"KORVET_(TEST_.*|(\w+_)?SERVICE_(HOST|PORT(_\w+)?)|(\w+_)?PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)

_DOCUMENT: Final = "docs/configuration.md"

# What a TOML file may hold besides settings: options of commands, where brokers are and where records are kept.
PLACES: Final = ("bootstrap", "store", "listen", "advertise", "zookeeper")


def variable(name: str) -> str:
    """The environment variable of a setting or a place."""
    return "KORVET_" + name.upper().replace(".", "_")


_ENVIRONMENT = {variable(name): name for name in SETTINGS}
_PLACE_VARIABLES = frozenset(map(variable, PLACES))


class Source(Enum):
    """The source of a setting's value, strongest first."""

    TOPIC = "the topic"
    FLAG = "--set"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


class Described(NamedTuple):
    """A value in force. `synonyms`: everywhere it could come from, strongest first, itself included."""

    name: str
    value: str
    source: Source
    setting: Setting
    synonyms: tuple[tuple[str, str, Source], ...]


class Settings:
    """The broker's settings, unchanging. `number`, `flag` and `text` give a value by its name in `SETTINGS`."""

    __slots__ = ("_values",)

    def __init__(self, given: Mapping[str, tuple[Value, Source]] | None = None) -> None:
        self._values = {name: (row.default, Source.DEFAULT) for name, row in SETTINGS.items()} | dict(given or {})

    def number(self, name: str) -> int:
        value = self._values[name][0]
        assert isinstance(value, int), name
        return value

    def flag(self, name: str) -> bool:
        return self._values[name][0] is True

    def text(self, name: str) -> str:
        return show(self._values[name][0])

    def replace(self, name: str, value: Value) -> "Settings":
        """The same settings but for this one, as if a flag gave it."""
        return Settings(self._values | {name: (value, Source.FLAG)})

    def counts(self, name: str) -> dict[str, int]:
        """A setting written as `topic:8,other:16`."""
        pairs = (pair.rpartition(":") for pair in self.text(name).split(",") if pair)
        return {topic.strip(): int(count) for topic, _, count in pairs}

    def source(self, name: str) -> Source:
        return self._values[name][1]

    def describe(self) -> list[Described]:
        """Every setting, by name."""
        return [
            Described(name, self.text(name), self.source(name), SETTINGS[name], self.synonyms(name))
            for name in sorted(SETTINGS)
        ]

    def synonyms(self, name: str) -> tuple[tuple[str, str, Source], ...]:
        default = (name, show(SETTINGS[name].default), Source.DEFAULT)
        value, source = self._values[name]
        return (default,) if source is Source.DEFAULT else ((name, show(value), source), default)


def read_settings(
    flags: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
    flag: str = Source.FLAG.value,
) -> Settings:
    """Flags (`name=value`), environment variables and a TOML file -> the settings.

    `flag`: what the caller's user knows the flags as. Raises `SettingError`.
    """
    given: dict[str, tuple[Value, Source]] = {}
    # Weakest first, so that a stronger source replaces it.
    for source, where, values in (
        (Source.FILE, str(file), _from_file(file) if file else {}),
        (Source.ENVIRONMENT, Source.ENVIRONMENT.value, _from_environment(environment or {})),
        (Source.FLAG, flag, _from_flags(flags, flag)),
    ):
        for name, value in values.items():
            row = SETTINGS.get(name)
            if row is None:
                known = [*SETTINGS, *MAPPED, *NEAREST, *PLACES] if source is Source.FILE else SETTINGS
                raise SettingError(f"{where}: there is no setting {explain_unknown(name, known, _DOCUMENT)}")
            try:
                given[name] = (row.parse(value), source)
            except ValueError as error:
                raise SettingError(f"{where}: {name} {error}") from None
    return Settings(given)


def _from_flags(flags: Iterable[str], where: str) -> dict[str, object]:
    values: dict[str, object] = {}
    for flag in flags:
        name, equals, value = flag.partition("=")
        if not equals:
            raise SettingError(f"{where} {flag!r}: write it as name=value")
        values[name.strip()] = value
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, value in environment.items():
        if name.startswith("KORVET_") and name not in _PLACE_VARIABLES and not _FOREIGN.fullmatch(name):
            if name not in _ENVIRONMENT:
                unknown = explain_unknown(name, [*_ENVIRONMENT, *_PLACE_VARIABLES], _DOCUMENT)
                raise SettingError(f"environment: there is no setting {unknown}")
            values[_ENVIRONMENT[name]] = value
    return values


def read_places(file: Path) -> dict[str, list[str]]:
    """The places of a TOML file, each a text or a list of them. Raises `SettingError`."""
    places = {}
    for name, value in _load(file).items():
        if name in PLACES and not isinstance(value, dict):
            texts = value if isinstance(value, list) else [value]
            if not texts or not all(isinstance(text, str) for text in texts):
                raise SettingError(f"{file}: {name} is {value!r}, but must be a text or a list of texts")
            places[name] = texts
    return places


def _from_file(file: Path) -> dict[str, object]:
    tree = _load(file)
    settings = {name: value for name, value in tree.items() if name not in PLACES or isinstance(value, dict)}
    try:
        return translate(dict(_flatten(settings, "")))
    except ValueError as error:
        raise SettingError(f"{file}: {error}") from None


def _load(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingError(f"{file}: is not UTF-8 text, as a TOML file has to be") from None
    except tomllib.TOMLDecodeError as error:
        # max.connections is a number, so max.connections.per.ip cannot be written below it without quotes.
        raise SettingError(f'{file}: {error}; a name may be quoted: "max.connections.per.ip" = 100') from None


def _flatten(tree: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, object]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
