"""docs/cli.md, docs/configuration.md and docs/metrics.md are what the tables in the code say; `make reference`."""

from pathlib import Path

from docs.reference import write_cli, write_configuration, write_metrics

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_commands_is_up_to_date() -> None:
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == write_cli()


def test_the_page_of_settings_is_up_to_date() -> None:
    assert (DOCS / "configuration.md").read_text(encoding="utf-8") == write_configuration()


def test_the_page_of_metrics_is_up_to_date() -> None:
    assert (DOCS / "metrics.md").read_text(encoding="utf-8") == write_metrics()
