"""python -m benchmarks.history [--commits 4]: measure the last commits that changed the product, and draw their graphs.

What was measured before is kept in .cache/asv and not measured again; a commit takes three to four minutes. The page
is .cache/asv/html/index.html; it has to be served, as browsers load no data for a file:
python -m http.server --directory .cache/asv/html.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.check.count import ROOT
from benchmarks.history.page import settle

CACHE = ROOT / ".cache" / "asv"
CONFIG = ROOT / "benchmarks" / "asv.conf.json"
FAILED = 2  # what `asv run` ends with if a commit cannot be measured as this tree measures: the graphs have a gap there
PRODUCT = ("korvet_fast", "rust", "Cargo.toml", "Cargo.lock")


def asv(command: str, *options: str, config: Path = CONFIG, may: int = 0) -> None:
    """Run one of asv's commands; what it says goes to the terminal.

    Raises `CalledProcessError` if it ends with anything but 0 or `may`.
    """
    # One directory for all builds: what a commit did not change in the Rust is not compiled again.
    environment = {**os.environ, "CARGO_TARGET_DIR": str(CACHE / "target"), "PYTHONPATH": ""}
    done = subprocess.run([sys.executable, "-m", "asv", command, "--config", config, *options], env=environment)
    if done.returncode not in (0, may):
        done.check_returncode()


def list_commits(many: int) -> list[str]:
    """The last commits that changed the product, newest first."""
    command = ["git", "-C", str(ROOT), "rev-list", f"--max-count={many}", "HEAD", "--", *PRODUCT]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def publish(html: Path, config: Path = CONFIG) -> None:
    """Draw what was measured into the directory that the configuration names."""
    asv("publish", "--no-pull", config=config)
    settle(html)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("--commits", type=int, default=4, help="how many commits, 4")
    arguments = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    chosen = CACHE / "commits"
    chosen.write_text("\n".join(list_commits(arguments.commits)) + "\n")
    asv("machine", "--yes")
    asv("run", "--no-pull", "--skip-existing-successful", "--show-stderr", f"HASHFILE:{chosen}", may=FAILED)
    publish(CACHE / "html")
    print(f"The page: {(CACHE / 'html' / 'index.html').relative_to(ROOT)}")


if __name__ == "__main__":
    main()
