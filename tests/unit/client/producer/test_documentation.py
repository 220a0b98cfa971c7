"""docs/producer.md says what the settings are, and names files and settings that exist."""

import re
from pathlib import Path

from korvet_fast.client.producer.settings import SETTINGS

ROOT = Path(__file__).parents[4]
TEXT = (ROOT / "docs/producer.md").read_text()


def test_the_table_has_every_setting() -> None:
    table = TEXT.split("## Settings", 1)[1]
    rows = re.findall(r"^\| \*?([\w.]+)\*? \| \*?([\w.]+)\*? \| .* \| (.*) \|$", table, re.MULTILINE)
    assert rows[1:] == [(each.name, each.sarama, each.meaning) for each in SETTINGS]


def test_every_file_exists() -> None:
    for name in re.findall(r"`(\w+\.py)`", TEXT):
        assert (ROOT / "korvet_fast/client/producer" / name).is_file()
