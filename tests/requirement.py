"""Tools some tests need. Missing: the test is skipped aloud, or fails where KORVET_TEST_REQUIRE asks for all."""

import os
import shutil

import pytest


def require(tool: str) -> str:
    """The path of a program; skips the test when it is not installed, fails it under KORVET_TEST_REQUIRE=all."""
    path = shutil.which(tool)
    if path is None:
        missing(f"{tool} is not installed on this machine")
    return path


def missing(what: str) -> None:
    """Skip, or fail under KORVET_TEST_REQUIRE=all."""
    if os.environ.get("KORVET_TEST_REQUIRE") == "all":
        pytest.fail(f"{what}, and KORVET_TEST_REQUIRE=all allows no skip")
    pytest.skip(what)
