"""kcat, Debian's: librdkafka 2.0 on the command line. It sends one form per run, since its headers are per run."""

import json
import subprocess
import tempfile
from itertools import groupby
from pathlib import Path

from compat.record import Record
from requirement import require

name = "kcat"


def produce(
    bootstrap: str, topic: str, records: list[Record], *, acks: str, compression: str, idempotent: bool
) -> None:
    program = require("kcat")
    options = [
        f"acks={acks}",
        f"compression.codec={compression}",
        f"enable.idempotence={str(idempotent).lower()}",
    ]
    for shape, group in groupby(records, key=lambda r: (r.key is None, r.headers)):
        keyless, headers = shape
        command = [program, "-P", "-b", bootstrap, "-t", topic, "-p", "0", "-D", "\x1e"]
        for option in options:
            command += ["-X", option]
        for header, value in headers:
            command += ["-H", header if value is None else f"{header}={value.decode()}"]
        lines = []
        for record in group:
            value = record.value or b""
            lines.append(value if keyless else (record.key or b"") + b"\x1f" + value)
        if not keyless:
            command += ["-K", "\x1f"]
        if any(r.value is None for r in records if (r.key is None, r.headers) == shape):
            command += ["-Z"]  # an empty value is sent as null
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "records"
            file.write_bytes(b"\x1e".join(lines))
            with file.open("rb") as source:
                subprocess.run([*command], stdin=source, check=True, timeout=60)


def consume(bootstrap: str, topic: str, count: int) -> list[Record]:
    command = [
        require("kcat"),
        "-C",
        "-b",
        bootstrap,
        "-t",
        topic,
        "-p",
        "0",
        "-o",
        "beginning",
        "-c",
        str(count),
        "-J",
    ]
    printed = subprocess.run(command, check=True, timeout=60, capture_output=True).stdout
    records = []
    for line in printed.splitlines():
        message = json.loads(line)
        pairs = message.get("headers", [])
        headers = tuple(
            (key, None if value is None else value.encode()) for key, value in zip(pairs[::2], pairs[1::2], strict=True)
        )
        key, value = message["key"], message["payload"]
        records.append(
            Record(None if key is None else key.encode(), None if value is None else value.encode(), headers)
        )
    return records
