"""`bench-check`: the commit to compare with, the verdict, and how callgrind's file is read."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.check import count, renamed, sides
from benchmarks.check.__main__ import Change, Sides, compare, find_worse, show
from benchmarks.codec.calls import prepare
from benchmarks.history import page
from requirement import require

WRITTEN = """# callgrind format
desc: Trigger: Client Request: call 10 nothing
events: Ir
fn=(1) something
totals: 1000
desc: Trigger: Client Request: call 10 validate_batch, 1,000
events: Ir
totals: 51000
desc: Trigger: Client Request: request 4 Produce 16 KB
totals: 8000
desc: Trigger: Program termination
totals: 77
"""


class Repository:
    """An empty one, with a commit whenever a test asks for it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
        command = ["git", "-C", str(self.place), *who, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, text: str) -> str:
        file = self.place / "korvet_fast" / "file.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", text)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setattr(sides, "ROOT", tmp_path)
    return Repository(tmp_path)


def test_a_branch_is_compared_with_where_it_left_what_it_is_merged_into(repository: Repository) -> None:
    left = repository.commit("1")
    repository.git("checkout", "--quiet", "-b", "work")
    repository.commit("2")
    repository.commit("3")
    assert sides.choose_base(None) == left
    assert sides.choose_base("HEAD~1") == repository.git("rev-parse", "HEAD~1")


def test_on_the_branch_itself_it_is_the_last_commit_if_something_is_changed_else_the_one_before(
    repository: Repository,
) -> None:
    first = repository.commit("1")
    with pytest.raises(SystemExit, match="git fetch --unshallow"):
        sides.choose_base(None)
    second = repository.commit("2")
    assert sides.choose_base(None) == first
    (repository.place / "notes").write_text("no part of the product")
    assert sides.choose_base(None) == first
    (repository.place / "korvet_fast" / "file.py").write_text("3")
    assert sides.choose_base(None) == second
    assert sides.describe(second).endswith(" 2")


def test_a_commit_that_is_not_there_is_said_to_be_so(repository: Repository) -> None:
    with pytest.raises(SystemExit, match="there is no commit nowhere"):
        sides.choose_base("nowhere")
    with pytest.raises(SystemExit, match="there is no commit to compare with"):
        sides.choose_base(None)


def test_worse_is_what_grew_by_so_much_and_by_more_than_luck() -> None:
    assert Change("x", 10_000, 10_400).is_worse(3.0)
    assert not Change("x", 10_000, 10_299).is_worse(3.0)
    assert not Change("x", 1_000, 1_100).is_worse(3.0)
    assert not Change("x", 10_000, 9_000).is_worse(3.0)


def test_what_looks_worse_is_counted_once_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    again = ({"a, 1": 10_000.0, "b, 1": 10_000.0}, {"a, 1": 10_500.0, "b, 1": 10_000.0})
    asked = []
    monkeypatch.setattr(Sides, "count_both", lambda self, words: asked.append(words) or again)
    first = [Change("a, 1", 10_000, 10_600), Change("b, 1", 10_000, 10_400), Change("c, 1", 10_000, 10_000)]
    sides = Sides(tmp_path, tmp_path, tmp_path)
    assert [change.name for change in find_worse(sides, first, 3.0)] == ["a, 1"]
    assert find_worse(sides, first[2:], 3.0) == []
    assert asked == [["a, 1", "b, 1"]]


def test_only_what_both_have_is_compared_and_the_worst_comes_first() -> None:
    found = compare({"a": 100, "b": 100, "gone": 1}, {"a": 110, "b": 120, "new": 1})
    assert [change.name for change in found] == ["b", "a"]


def test_of_what_callgrind_wrote_each_call_is_told_without_the_counting_itself() -> None:
    assert count.read(WRITTEN) == {"validate_batch, 1,000": 5000, "Produce 16 KB": 2000}


def test_a_program_that_fails_is_told_with_its_words(tmp_path: Path) -> None:
    require("valgrind")
    program = tmp_path / "benchmarks" / "check" / "program.py"
    program.parent.mkdir(parents=True)
    for package in (program.parent, program.parent.parent):
        (package / "__init__.py").touch()
    program.write_text("raise ValueError('these benchmarks need something newer')")
    with pytest.raises(count.Uncounted, match=r"ended with status 1:\n(.*\n)*ValueError: these benchmarks"):
        count.count(tmp_path, harness=tmp_path)


def test_a_script_of_asv_that_is_not_known_is_not_left_to_other_sites() -> None:
    known = '<script src="https://example.org/a/md5.min.js" integrity="x" onerror="y()"></script>'
    assert page._FOREIGN.sub(page._own, known) == '<script src="scripts/blueimp-md5/js/md5.min.js"></script>'
    with pytest.raises(KeyError, match=r"other\.js"):
        page._FOREIGN.sub(page._own, known.replace("md5.min.js", "other.js"))


def test_a_commit_is_shown_with_its_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    show([Change("validate_batch, 1", 100, 110)], "the extra [spark]", {"validate_batch, 1"})
    printed = capsys.readouterr().out
    assert "the extra [spark]" in " ".join(printed.split())
    assert "+10.00 % worse" in printed


def test_rows_are_found_under_the_names_they_had() -> None:
    assert set(renamed.RENAMED.values()) < {name.split(" ")[0] for name in prepare(1)}
    rows = [
        "admit, 100",
        "headers (verify), 1",
        "Rows.batches, 1",
        "Schema.decode, 1",
        "Produce 16 KB",
        "OffsetCommit, check",
    ]
    now = ["validate_batch, 100", "batch_headers (verify), 1", "ArrowRecords.batches, 1", *rows[3:]]
    assert [renamed.today(name) for name in rows] == now
    assert renamed.with_earlier(["validate_batch, 100"]) == ["validate_batch, 100", "admit, 100"]
    assert renamed.with_earlier(["Convert", "Produce 16"]) == ["Convert", "lift", "lower", "Produce 16"]
    assert renamed.with_earlier([]) == []


def test_a_commit_before_the_renaming_is_compared_by_todays_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(side: Path, words: list[str], harness: Path | None = None) -> dict[str, float]:
        if side.name == "tree":
            return {"validate_batch, 1": 100.0}
        if harness is None:
            raise count.Uncounted("no build_batch")
        return {"admit, 1": 90.0} if "admit, 1" in words else {}

    monkeypatch.setattr("benchmarks.check.__main__.count", counted)
    (tmp_path / "source" / "benchmarks" / "check").mkdir(parents=True)
    both = Sides(tmp_path / "tree", tmp_path / "base", tmp_path / "source").count_both(["validate_batch, 1"])
    assert compare(*both) == [Change("validate_batch, 1", 90.0, 100.0)]
