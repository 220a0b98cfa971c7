"""Imports of `korvet_fast.spark`: few on executors, and nothing native to be imported."""

import subprocess
import sys

PROGRAM = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in {missing!r}:
            raise ModuleNotFoundError(f"there is no {{name}} here", name=name)

sys.meta_path.insert(0, Missing())
{program}
"""


def run(missing: tuple[str, ...], program: str) -> str:
    """The output of a new Python that lacks these modules."""
    command = [sys.executable, "-c", PROGRAM.format(missing=missing, program=program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_executors_need_little() -> None:
    modules = "fetcher, reader, row, session, source, stream"
    run(("uvloop", "redis", "hiredis", "click", "rich"), f"from korvet_fast.spark import {modules}")


def test_without_the_native_module_the_source_can_be_registered_and_says_what_is_missing_when_it_is_used() -> None:
    said = run(
        ("korvet_fast._native",),
        "from korvet_fast.spark import KorvetDataSource, configure\n"
        "source = KorvetDataSource({'subscribe': 't'})\n"
        "print(source.name())\n"
        "try:\n    source.schema()\n"
        "except ModuleNotFoundError as error:\n    print(error)\n",
    )
    assert said == "korvet\nthere is no korvet_fast._native here\n"
