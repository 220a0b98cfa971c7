"""The two states that are compared: this tree, and an earlier commit, each as a directory that holds `korvet_fast`."""

import compileall
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from benchmarks.check.count import ROOT

CACHE = ROOT / ".cache" / "check"
RUST = ("rust", "Cargo.toml", "Cargo.lock", ":!rust/fuzz", ":!rust/benches")  # what the extension is built from
NATIVE = "_native.abi3.so"
_ISSUED = ("origin/main", "main")  # what work is merged into


def choose_base(asked: str | None) -> str:
    """The commit to compare with.

    The one asked for; else where this branch left the one it will be merged into; on that branch itself the commit
    this tree was changed from, or, if nothing is changed, the one before. Exits with a sentence if there is none.
    """
    if asked is not None:
        return _commit(asked) or _leave(f"there is no commit {asked}")
    head = _commit("HEAD") or _leave("there is no commit to compare with")
    for issued in _ISSUED:
        if _commit(issued) and (base := _git("merge-base", "HEAD", issued)) != head:
            return base
    if _git("status", "--porcelain", "--", "korvet_fast", *RUST):
        return head
    why = "there is no commit before this one here; if the history is cut off, fetch it (git fetch --unshallow)"
    return _commit("HEAD~1") or _leave(why)


def describe(commit: str) -> str:
    """A commit in a few words."""
    return _git("log", "-1", "--format=%h %s", commit)


def prepare_tree() -> Path:
    """A copy of this tree's package, so that both sides lie in paths of the same length."""
    side = CACHE / "tree"
    shutil.rmtree(side, ignore_errors=True)
    shutil.copytree(ROOT / "korvet_fast", side / "korvet_fast", ignore=shutil.ignore_patterns("__pycache__"))
    return _compile(side)


def prepare_base(commit: str) -> tuple[Path, Path]:
    """The package as of that commit, and the root of that commit's sources.

    Its extension is this tree's where nothing of the Rust differs; else it is built, once for each state of the Rust.
    """
    source, side = CACHE / "source", CACHE / "base"
    for place in (source, side):
        shutil.rmtree(place, ignore_errors=True)
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(source, filter="data")
    shutil.copytree(source / "korvet_fast", side / "korvet_fast")
    same = subprocess.run(["git", "-C", ROOT, "diff", "--quiet", commit, "--", *RUST], check=False).returncode == 0
    native = ROOT / "korvet_fast" / NATIVE if same else _build(commit, source)
    shutil.copy(native, side / "korvet_fast" / NATIVE)
    return _compile(side), source


def _build(commit: str, source: Path) -> Path:
    """The extension of another state of the Rust, with the options that `make develop` uses."""
    state = _git("ls-tree", "-r", commit, "--", *(path for path in RUST if path[0] != ":"))
    compiler = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    built = CACHE / "native" / f"{hashlib.sha256((state + compiler).encode()).hexdigest()[:16]}.so"
    if not built.exists():
        print(f"building the extension of {describe(commit)}", file=sys.stderr)
        wheels, target = source / "wheels", CACHE / "target"
        for file in (source / "rust").rglob("*.rs"):
            file.touch()  # cargo goes by times: those of the commit would make it take what is built for up to date
        if not target.exists() and (ROOT / "target" / "release").exists():
            # The crates we depend on need not be compiled again. A directory of its own, as both sides make one file.
            shutil.copytree(ROOT / "target" / "release", target / "release", symlinks=True)
        maturin = Path(sys.executable).with_name("maturin")
        subprocess.run(
            [maturin, "build", "--release", "--locked", "--quiet", "--out", wheels],
            cwd=source,
            env={**os.environ, "CARGO_TARGET_DIR": str(target)},
            check=True,
        )
        built.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
            built.write_bytes(wheel.read(f"korvet_fast/{NATIVE}"))
    return built


def _compile(side: Path) -> Path:
    compileall.compile_dir(side, quiet=1)  # under callgrind it would take long
    return side


def _commit(name: str) -> str | None:
    found = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or None


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def _leave(why: str) -> str:
    raise SystemExit(f"cannot compare: {why}")
