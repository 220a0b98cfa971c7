"""Skips: each one is said aloud, and fails where KORVET_TEST_REQUIRE asks for all."""

import re
from pathlib import Path

import pytest

import requirement

TESTS = Path(requirement.__file__).parent
SKIPS = re.compile(r"pytest\.(?:skip|importorskip)\(|mark\.skip|unittest\.skip")


def test_finding_6_8_every_skip_is_one_that_can_be_forbidden() -> None:
    found = [
        f"{file.relative_to(TESTS)}: {line.strip()}"
        for file in TESTS.rglob("*.py")
        if file not in (Path(__file__), Path(requirement.__file__))
        for line in file.read_text().splitlines()
        if SKIPS.search(line)
    ]
    assert found == []


def test_what_is_missing_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KORVET_TEST_REQUIRE", raising=False)
    with pytest.raises(pytest.skip.Exception, match="nowhere-to-be-found is not installed"):
        requirement.require("nowhere-to-be-found")
    monkeypatch.setenv("KORVET_TEST_REQUIRE", "all")
    with pytest.raises(pytest.fail.Exception, match="allows no skip"):
        requirement.require("nowhere-to-be-found")
    assert Path(requirement.require("sh")).name == "sh"
