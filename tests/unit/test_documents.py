"""Every command in README and docs/ is run by a test, or is in a short list with the reason; and every one exists."""

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from documents import NOT_RUN, ROOT, RUNNABLE, read_blocks
from korvet_fast.cli import root

PAGES = sorted(
    subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
)
# The test that runs all blocks of a page but those of NOT_RUN; each takes them all, or fails.
RUN_BY = {
    "README.md": ("tests/compat/test_readme.py", "tests/compat/spark/test_readme.py"),
    "docs/getting-started.md": ("tests/compat/test_readme.py",),
    "docs/redis.md": ("tests/compat/test_readme.py",),
    "docs/embedding.md": ("tests/examples/test_embedding.py",),
    "docs/spark-pipeline.md": ("tests/compat/spark/test_readme.py",),
    "docs/spark.md": ("tests/compat/spark/test_readme.py",),
    **dict.fromkeys(
        (
            "docs/durability.md",
            "docs/legacy.md",
            "docs/operations.md",
            "docs/producer.md",
            "docs/replication.md",
            "docs/security.md",
            "docs/text.md",
        ),
        ("tests/compat/test_documents.py",),
    ),
}
LANGUAGES = {*RUNNABLE, "text", "ini", "toml", "yaml", "mermaid"}
DOCUMENTS = [page for page in PAGES if page in ("README.md", "CONTRIBUTING.md") or page.startswith("docs/")]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", DOCUMENTS)
def test_a_block_is_run_or_says_why_not(page: str) -> None:
    blocks = read_blocks(page)
    assert {block.language for block in blocks} <= LANGUAGES, "a block has no language"
    if any(block.language in RUNNABLE and block.reason is None for block in blocks):
        for test in RUN_BY[page]:
            assert Path(page).name in (ROOT / test).read_text()


@pytest.mark.parametrize(("page", "line"), NOT_RUN)
def test_a_reason_is_for_a_block_that_there_is(page: str, line: str) -> None:
    found = [block for block in read_blocks(page) if block.language in RUNNABLE and block.text.startswith(line)]
    assert len(found) == 1
    assert NOT_RUN[page, line]


def test_the_list_of_reasons_is_short() -> None:
    assert len(NOT_RUN) <= 12


def commands(page: str) -> list[str]:
    """Whatever begins with korvet-fast: in blocks, in the examples of help texts, in prose."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^ *(?:\$ |\w+=\S+ )*(?:.*\| *)?(korvet-fast .*)$", text, re.MULTILINE)
    return [*blocks, *re.findall(r"`(korvet-fast [^`]+)`", text)]


@pytest.mark.parametrize("page", DOCUMENTS)
def test_commands_and_their_options_exist(page: str) -> None:
    for line in commands(page):
        line = re.split(r" *(?:[|;&#…<>]|\.\.\.|→| is | — )", line)[0].rstrip(".,:)")
        if line.count("'") % 2 or line.count('"') % 2:
            continue
        command: click.Command = root
        for word in shlex.split(line)[1:]:
            if isinstance(command, click.Group) and not word.startswith("-"):
                found = command.get_command(click.Context(command), word.strip("."))
                assert found is not None, f"{page}: there is no command {word!r}: {line}"
                command = found
            elif word.startswith("--"):
                options = {name for each in command.params for name in each.opts} | {"--help", "--version"}
                assert word.split("=")[0] in options, f"{page}: {command.name} has no option {word}: {line}"


@pytest.mark.parametrize("page", PAGES)
def test_targets_of_make_exist(page: str) -> None:
    named = re.findall(r"(?:`|^)make ([a-z-]+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert set(named) <= TARGETS
