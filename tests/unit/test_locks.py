"""The installed packages are the tested ones: every package that the Makefile installs is locked, with hashes."""

import os
import re
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TREE = Path(__file__).parents[2]
PROJECT = tomllib.loads((TREE / "pyproject.toml").read_text())
LOCKS = sorted((TREE / "requirements").glob("*.txt"))
INDEX = "registry+https://github.com/rust-lang/crates.io-index"

# Files of requirements/, and the groups of pyproject.toml that they lock; "": what the product itself needs.
GROUPS = {
    "develop": ("", "lint", "docs", "test", "demo", "demo-spark"),
    "demo": ("", "demo"),
    "demo-spark": ("", "demo", "demo-spark"),
    "build": ("build",),
    "locks": ("locks",),
    "release": ("release",),
}


def read_lock(name: str) -> dict[str, list[Requirement]]:
    """The packages of a lock file; one has several rows where its version depends on Python's. Each has hashes."""
    found: dict[str, list[Requirement]] = {}
    for row in (TREE / "requirements" / f"{name}.txt").read_text().replace("\\\n", " ").splitlines():
        if row.startswith("#"):
            continue
        text, *hashes = row.split(" --hash=")
        assert hashes, row
        assert all(re.fullmatch(r"\s*sha256:[0-9a-f]{64}\s*", each) for each in hashes), row
        locked = Requirement(text)
        assert re.fullmatch(r"==[^=*,]+", str(locked.specifier)), row
        found.setdefault(canonicalize_name(locked.name), []).append(locked)
    return found


def wanted(groups: Iterable[str]) -> list[Requirement]:
    dependencies = PROJECT["project"]["dependencies"]
    return [
        Requirement(text) for name in groups for text in (PROJECT["dependency-groups"][name] if name else dependencies)
    ]


@pytest.mark.parametrize("name", GROUPS)
def test_finding_4_6_every_python_package_is_locked_with_hashes(name: str) -> None:
    locked = read_lock(name)
    for requirement in wanted(GROUPS[name]):
        rows = locked[canonicalize_name(requirement.name)]
        assert all(requirement.specifier.contains(str(row.specifier)[2:]) for row in rows), f"{requirement}: make locks"


def test_finding_4_6_the_files_that_are_written_by_hand_are_locked_too() -> None:
    for file in (TREE / "requirements").glob("*.in"):
        locked = read_lock(file.stem)
        for text in file.read_text().splitlines():
            assert str(Requirement(text).specifier) in {str(row.specifier) for row in locked[Requirement(text).name]}


def test_finding_4_6_lock_files_name_no_place_to_fetch_from() -> None:
    assert len(LOCKS) >= len(GROUPS)
    for file in LOCKS:
        assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host", file.read_text()), file
    for file in (TREE / "Cargo.lock", TREE / "rust/fuzz/Cargo.lock", TREE / "benchmarks/load/Cargo.lock"):
        assert set(re.findall('^source = "(.*)"$', file.read_text(), re.MULTILINE)) == {INDEX}


def test_finding_4_6_whatever_compiles_or_installs_keeps_to_the_lock_files() -> None:
    lines = (TREE / "Makefile").read_text().replace("\\\n", " ").splitlines()
    compiling = [
        line for line in lines if re.search(r"cargo (test|clippy|bench|run|install)|maturin (develop|build) ", line)
    ]
    assert len(compiling) >= 9
    assert [line for line in compiling if "--locked" not in line] == []
    installing = [line for line in lines if "pip install" in line]
    assert installing
    assert [line for line in installing if "--require-hashes" not in line and "--no-deps dist/" not in line] == []


@pytest.mark.parametrize(
    ("cargo", "pip_audit", "code", "said"),
    [
        ("exit 0", "echo No known vulnerabilities found", 0, ""),
        (
            "exit 0",
            "echo Found 1 known vulnerability in 1 package; exit 1",
            1,
            "pip-audit found something in requirements/",
        ),
        ("exit 0", "echo no route; exit 1", 1, "cannot be asked about requirements/build.txt: no route"),
        ('[ "$2" != --config ]', "exit 0", 1, "advisories cannot be reached"),
        ('[ "$2" = --config ]', "exit 0", 1, "cargo deny is not content with the lock file of rust/fuzz/Cargo.toml"),
    ],
    ids=["clean", "Python hole", "Python unreachable", "Rust unreachable", "Rust hole"],
)
def test_finding_4_6_the_audit_fails_for_what_is_found_and_for_what_nobody_could_be_asked(
    tmp_path: Path, cargo: str, pip_audit: str, code: int, said: str
) -> None:
    for name, script in (("cargo", cargo), ("pip-audit", pip_audit)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([TREE / ".ci" / "audit"], capture_output=True, text=True, env=environment, timeout=240)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
