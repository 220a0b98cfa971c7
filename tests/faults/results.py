"""What the rounds have shown, a line of JSON for each test of each round: results/faults.jsonl."""

import hashlib
import json
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILE = ROOT / "results" / "faults.jsonl"
PRODUCT = ("korvet_fast", "rust")  # what is tested


@dataclass
class Result:
    """One test (as the table names it) in one round.

    `began`: UTC. `counts`: lines of tests/counts.py. `version`: of the test's file, as `find_version` told it then.
    """

    product: str
    round: int
    test: str
    began: str
    seconds: float
    passed: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)
    counts: list[dict[str, Any]] = field(default_factory=list)
    version: str = ""


def find_product() -> str:
    """The last commit of the product. Raises `SystemExit` if it was changed since: nobody could say what was tested."""
    command = ["git", "status", "--porcelain", "--", *PRODUCT]
    if changed := subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout:
        raise SystemExit(f"commit these first, so that the results are those of a commit:\n{changed}")
    command = ["git", "log", "-1", "--format=%h", "--", *PRODUCT]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def find_version(test: str) -> str:
    """It changes with the file that the test is in, or any of its directory; not with what that imports."""
    place = ROOT / test.partition("::")[0]
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def read_results(product: str, file: Path = FILE) -> list[Result]:
    """Of this product and of the tests as they are; others stay in the file. A line that a kill has torn is none."""
    if not file.exists():
        return []
    results = []
    for line in file.read_text().splitlines():
        try:
            result = Result(**json.loads(line))
        except json.JSONDecodeError:
            continue
        if result.product == product and result.version == find_version(result.test):
            results.append(result)
    return results


def save(result: Result, file: Path = FILE) -> None:
    """Append it; behind a line that was torn, on a line of its own."""
    file.parent.mkdir(exist_ok=True)
    with file.open("a+b") as lines:
        lines.seek(0, 2)
        if lines.tell():
            lines.seek(-1, 2)
            if lines.read(1) != b"\n":
                lines.write(b"\n")
        lines.write(json.dumps(asdict(result)).encode() + b"\n")
