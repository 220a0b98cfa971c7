"""What a broker that waits for the others tells its operator."""

import asyncio
import shlex
from pathlib import Path

import pytest

from replicated_scene import ReplicatedScene


async def read_command(tmp_path: Path, caplog: pytest.LogCaptureFixture, *settings: str) -> str:
    """What the log of a broker that waits has behind `korvet-fast`."""
    caplog.set_level("INFO")
    scene = ReplicatedScene(tmp_path, *settings)
    opening = scene.begin(2)
    try:
        await scene.until(lambda: "korvet-fast " in caplog.text)
    finally:
        opening.cancel()
        await asyncio.wait([opening])
    line = next(text for text in map(str, caplog.messages) if "korvet-fast " in text)
    return line.partition("korvet-fast ")[2]


async def test_the_command_in_the_log_can_be_typed_as_it_stands(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = tmp_path / "our secret"
    command = await read_command(tmp_path, caplog, f"replication.secret.file={secret}")
    assert shlex.split(command)[-2:] == ["--secret-file", str(secret)]


async def test_inside_tls_it_says_which_file_it_needs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    command = await read_command(tmp_path, caplog, "security.inter.broker.protocol=SSL")
    assert " --command-config FILE (FILE has security.protocol=SSL, and ssl.truststore.location and ssl" in command
