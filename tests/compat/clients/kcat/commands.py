"""The driver's commands, carried out by kcat. Keys and values are text between separators; a run shares its headers."""

import json
import re
import subprocess
import tempfile
from itertools import groupby
from typing import Any

from compat.clients.lines import PATIENCE, CommandFailed, Unsupported, pack, unpack
from compat.clients.security import librdkafka_settings, security

_RECORD, _KEY = "\x1e", "\x1f"  # separators that are in no text


def secure() -> list[str]:
    """Options of every kcat. Raises Unsupported for a token: kcat gives librdkafka none that it was given.

    Debian's librdkafka is built without OIDC, by which it would fetch one.
    """
    given = security()
    if given is not None and given.token:
        raise Unsupported("a token of a provider")
    return [word for name, value in librdkafka_settings().items() for word in ("-X", f"{name}={value}")]


class Client:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def _run(self, *arguments: str, source: bytes = b"") -> bytes:
        command = ["kcat", "-b", self.bootstrap, "-m", str(int(PATIENCE)), *secure(), *arguments]
        with tempfile.TemporaryFile() as file:
            file.write(source)
            file.seek(0)
            done = subprocess.run(command, stdin=file, capture_output=True, timeout=PATIENCE)
        if done.returncode:
            raise CommandFailed(done.stderr.decode())
        return done.stdout

    def describe(self) -> dict[str, Any]:
        said = subprocess.run(["kcat", "-V"], check=True, capture_output=True, text=True).stdout
        found = re.search(r"Version (\S+) .*librdkafka (\S+)", said)
        if found is None:
            raise CommandFailed(said)
        return {"client": "kcat", "version": f"{found[1]} (librdkafka {found[2]})"}

    def produce(
        self, topic: str, partition: int, acks: str, compression: str, idempotent: bool, records: list[dict[str, Any]]
    ) -> dict[str, Any]:
        if any("timestamp" in record for record in records):
            raise Unsupported("a record's time")
        settings = (
            *(f"acks={acks}", f"compression.codec={compression}"),
            *(f"enable.idempotence={str(idempotent).lower()}", "message.max.bytes=4000000"),
        )
        common = ["-P", "-t", topic, "-p", str(partition), "-D", _RECORD]
        common += [word for setting in settings for word in ("-X", setting)]
        for (keyless, null, headers), group in groupby(records, key=_shape):
            own = [] if keyless else ["-K", _KEY]
            own += ["-Z"] if null else []  # an empty value is sent as null
            for name, value in headers:
                own += ["-H", name if value is None else f"{name}={(unpack(value) or b'').decode()}"]
            lines = [_line(record) for record in group]
            self._run(*common, *own, source=_RECORD.encode().join(lines))
        return {"count": len(records)}

    def consume(self, topic: str, partition: int, offset: int, count: int) -> dict[str, Any]:
        place = ("-t", topic, "-p", str(partition), "-o", str(offset), "-c", str(count))
        rows = [json.loads(line) for line in self._run("-C", *place, "-J").splitlines()]
        return {"records": [_row(message) for message in rows]}

    def offset_for_time(self, topic: str, partition: int, ms: int) -> dict[str, Any]:
        said = self._run("-Q", "-t", f"{topic}:{partition}:{ms}").decode()
        return {"offset": max(int(said.split()[-1]), -1)}  # `topic [0] offset 12`


def _shape(record: dict[str, Any]) -> tuple[bool, bool, list[list[str | None]]]:
    """The options that all records of one run share."""
    return record["key"] is None, record["value"] is None, record["headers"]


def _line(record: dict[str, Any]) -> bytes:
    value = unpack(record["value"]) or b""
    return value if record["key"] is None else (unpack(record["key"]) or b"") + _KEY.encode() + value


def _row(message: dict[str, Any]) -> dict[str, Any]:
    def encode(text: str | None) -> str | None:
        return None if text is None else pack(text.encode())

    pairs = message.get("headers", [])
    headers = [[name, encode(value)] for name, value in zip(pairs[::2], pairs[1::2], strict=True)]
    own = {"key": encode(message["key"]), "value": encode(message["payload"]), "headers": headers}
    return {"offset": message["offset"], "timestamp": message["ts"], **own}
