"""Compiles `korvet_reference` with Cython, as it stands, into build/cython under the name `korvet_cython`."""

import importlib
import shutil
import sys
from pathlib import Path
from types import ModuleType

from Cython.Build import cythonize
from setuptools import Distribution
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "python" / "korvet_reference"
TARGET = ROOT / "build" / "cython"
NAME = "korvet_cython"


def load_compiled() -> ModuleType:
    """The compiled package; built first if a source is newer than the last build."""
    stamp = TARGET / "stamp"
    sources = sorted(SOURCE.glob("*.py"))
    if not stamp.exists() or stamp.stat().st_mtime < max(file.stat().st_mtime for file in sources):
        build(sources)
        stamp.touch()
    sys.path.insert(0, str(TARGET))
    return importlib.import_module(NAME)


def build(sources: list[Path]) -> None:
    """Only the package's name is changed, so that both can be loaded at once."""
    package = TARGET / NAME
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for file in sources:
        (package / file.name).write_text(file.read_text().replace("korvet_reference", NAME))
    modules = cythonize(
        [str(file) for file in sorted(package.glob("*.py"))],
        build_dir=str(TARGET / "c"),
        compiler_directives={"language_level": 3},
        quiet=True,
    )
    command = build_ext(Distribution({"ext_modules": modules}))
    command.build_lib = str(TARGET)
    command.build_temp = str(TARGET / "temp")
    command.ensure_finalized()
    command.run()
