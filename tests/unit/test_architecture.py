"""ARCHITECTURE.md is true: every path in it exists, and every word of its glossary is used."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from kafka_server import kafka_server, make_batch, run

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "korvet_fast"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
MOST_WORDS = 40


def tracked(*patterns: str) -> list[str]:
    return subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()


FILES = tracked()
PATHS = sorted(
    {word for word in re.findall(r"`([\w./-]+(?:\.py|\.pyi|\.md|\.json|/))`", TEXT) if "/" in word or "." in word}
)
LINKS = sorted(set(re.findall(r"\]\(([\w./-]+\.md)\)", TEXT)))


def exists(path: str) -> bool:
    """Whether a file or folder ends with this path, on whole names; a bare name is relative to its row's first path."""
    ending = f"/{path}"
    if path.endswith("/"):
        return any(ending in f"/{file}" for file in FILES)
    return any(f"/{file}".endswith(ending) for file in FILES)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_exists(path: str) -> None:
    assert exists(path)


@pytest.mark.parametrize("path", LINKS)
def test_a_link_leads_somewhere(path: str) -> None:
    assert (ROOT / path).is_file()


def rows(title: str) -> list[list[str]]:
    """The rows of the first table under a heading, without the table's head."""
    lines = TEXT.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0].splitlines()
    table = [line for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[2:]]


GLOSSARY = [row[0] for row in rows("Our own words")]
SOURCES = "\n".join(
    (ROOT / file).read_text() for file in tracked("korvet_fast/*.py", "python/*.py", "tests/twin/*.py")
).lower()


def test_the_glossary_is_short() -> None:
    assert 0 < len(GLOSSARY) <= MOST_WORDS
    assert len(set(GLOSSARY)) == len(GLOSSARY)


@pytest.mark.parametrize("word", GLOSSARY)
def test_a_word_of_the_glossary_is_used(word: str) -> None:
    """As a phrase or as an identifier."""
    assert re.search(r"\b" + word.lower().replace(" ", r"[ _]?"), SOURCES) or word.replace(" ", "_").lower() in SOURCES


def test_where_answers_with_paths() -> None:
    """Each row of the table names at least one path of the package."""
    for question, answer in rows("Where is …"):
        assert any(exists(path) for path in re.findall(r"`([\w./-]+(?:\.py|/))`", answer)), question


def test_where_names_what_the_files_have() -> None:
    """Whatever a row calls by its name is in one of the files that the row names."""
    for question, answer in rows("Where is …"):
        words = re.findall(r"`([^`]+)`", answer)
        files = [file for file in FILES for word in words if f"/{file}".endswith(f"/{word}")]
        sources = "\n".join((ROOT / file).read_text() for file in files)
        missing = [word for word in words if not exists(word) and not re.search(rf"\b{re.escape(word)}\b", sources)]
        assert missing == [], question


WALKS = ["produce", "fetch"]


def steps(request_kind: str) -> list[str]:
    """The files of a walk, in the order of its steps."""
    title = f"## One {request_kind}, from socket to disk, in six files\n"
    section = TEXT.split(title, 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\d+\. `([\w./]+\.py)`", section, re.MULTILINE)


@pytest.mark.parametrize("request_kind", WALKS)
def test_a_walk_is_six_files(request_kind: str) -> None:
    """Each step is one file of the package, and no file is two steps."""
    files = steps(request_kind)
    assert len(set(files)) == len(files) == 6
    assert all(f"korvet_fast/{file}" in FILES for file in files)


@contextmanager
def calls_into(file: str) -> Iterator[list[list[str]]]:
    """The files of the package that call each other down to this one, from the top: one list for each call into it."""
    found: list[list[str]] = []

    def note(frame: FrameType | None, event: str, _: Any) -> None:
        stack: list[str] = []
        while event == "call" and frame is not None:
            path = Path(frame.f_code.co_filename)
            name = path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else ""
            if not stack and name != file:
                return
            if name and (not stack or stack[-1] != name):
                stack.append(name)
            frame = frame.f_back
        if stack:
            found.append(stack[::-1])

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("request_kind", WALKS)
def test_a_small_request_takes_the_walk(tmp_path: Path, request_kind: str) -> None:
    """Down to the disk each file calls the next; between them is only what starts a request without a task."""

    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t", durability="written")  # readable at once
            await client.produce("t", make_batch(b"first"), acks=1)  # opens files
            *above, last = steps(request_kind)
            with calls_into(last) as found:
                if request_kind == "produce":
                    await client.produce("t", make_batch(b"second"), acks=1)
                else:
                    await client.fetch("t", 0)
            assert [name for name in found[0] if name != "core/eager.py"] == [*above, last]

    run(scenario)
