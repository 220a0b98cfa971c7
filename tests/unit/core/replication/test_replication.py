"""What a broker that waits for the others tells its operator."""

import asyncio
import shlex
from pathlib import Path

import pytest

from replicated_scene import ReplicatedScene


async def test_the_command_in_the_log_can_be_typed_as_it_stands(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    secret = tmp_path / "our secret"
    scene = ReplicatedScene(tmp_path, f"replication.secret.file={secret}")
    opening = scene.begin(2)
    try:
        await scene.until(lambda: "korvet-fast " in caplog.text)
    finally:
        opening.cancel()
        await asyncio.wait([opening])
    line = next(text for text in map(str, caplog.messages) if "korvet-fast " in text)
    assert shlex.split(line.partition("korvet-fast ")[2])[-2:] == ["--secret-file", str(secret)]
