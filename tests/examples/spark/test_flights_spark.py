"""`make demo-spark` with fewer flights: the stream's figures are those of the file, and there is a picture."""

import re
from pathlib import Path

import pytest

from examples.flights import spark as flights_spark
from flight_lines import write_flights
from requirement import require

COUNT = 3_000


@pytest.mark.timeout(300)  # Spark is started
def test_the_stream_gives_the_figures_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require("java")
    monkeypatch.setattr(flights_spark, "ROWS", COUNT)
    monkeypatch.setattr(flights_spark, "AT_ONCE", COUNT // 2)
    monkeypatch.setattr(flights_spark, "PICTURE", tmp_path / "pictures" / "delays.png")
    monkeypatch.setattr(flights_spark, "flights", lambda: write_flights(COUNT))
    flights_spark.main()
    printed = " ".join(capsys.readouterr().out.split())
    triggers = re.search(r"│ triggers of the stream │ (\d+) │", printed)
    assert triggers is not None
    assert int(triggers[1]) >= 2
    assert "The stream's figures are those of the file, to the last digit." in printed
    assert (tmp_path / "pictures" / "delays.png").read_bytes().startswith(b"\x89PNG")
