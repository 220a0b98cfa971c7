"""The documentation as a site, and its links as somebody follows them in the repository."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from browser import open_browser
from docs.pages import ELSEWHERE

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
)
WANTED = """
    abuse architecture benchmarks changes cli compatibility configuration durability embedding getting-started groups
    index leadership legacy limits operations producer redis releasing replication spark spark-cluster spark-pipeline
    text topic-settings
"""


def build(target: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target), *options]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built strictly: a link or an anchor that leads nowhere, or a page outside of the menu, ends it."""
    place = tmp_path_factory.mktemp("site")
    built = build(place)
    assert built.returncode == 0, built.stderr
    return place


def test_every_page_is_there(site: Path) -> None:
    assert {f"{name}.html" for name in WANTED.split()} <= {file.name for file in site.glob("*.html")}
    assert not list(site.rglob("*.py"))


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loading = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
    styles = re.compile(r"(?:@import|url\()\s*[\"']?(?:https?:)?//")
    for file in site.rglob("*.html"):
        assert loading.findall(file.read_text(encoding="utf-8")) == [], file
    for file in site.rglob("*.css"):
        assert styles.findall(file.read_text(encoding="utf-8")) == [], file


def test_a_list_is_no_row_of_a_table(site: Path) -> None:
    """What stands right below a table is its last row here, other than on GitHub."""
    for file in site.glob("*.html"):
        assert re.findall(r"<td[^>]*>(?:-|\*|\d+\.) ", file.read_text(encoding="utf-8")) == [], file


# What reaches out of the screen and stands in nothing that scrolls.
OUTSIDE = """
const scrolls = part => part && (part.scrollWidth > part.clientWidth + 1
    ? getComputedStyle(part).overflowX !== "visible" : scrolls(part.parentElement));
return [...document.querySelectorAll("article *")].filter(part =>
    part.getBoundingClientRect().right > innerWidth + 1 && !scrolls(part.parentElement)).map(part => part.outerHTML);
"""
# Whether the field to search in is seen, and its button on narrow screens: from a directory it does not search.
SEARCHES = """
return [".md-search", "label[for=__search]"].map(part => document.querySelector(`header ${part}`).offsetWidth > 0);
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_fits_the_screen(site: Path, tmp_path: Path, width: int) -> None:
    with open_browser(tmp_path / "chromium") as browser:
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        for page in sorted(site.glob("*.html")):
            browser.get(page.as_uri())
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width, page.name
            assert browser.execute_script(OUTSIDE) == [], page.name
            missing = "return [...document.images].filter(image => !image.naturalWidth).map(image => image.src)"
            assert browser.execute_script(missing) == [], page.name
            if page.name != "404.html":  # a server's: its styles are where the server's root is
                assert browser.execute_script(SEARCHES) == [False, False], f"{page.name}: a button finds nothing"
            assert "stateDiagram" not in browser.find_element("tag name", "article").text, page.name


def test_a_broken_link_ends_the_build(tmp_path: Path) -> None:
    """With a copy of the pages in which one link is wrong, and one anchor."""
    for name in ("docs", "examples", "benchmarks"):
        (tmp_path / name).mkdir()
    for page in [*ELSEWHERE, "mkdocs.yml", "docs/pages.py", *(page for page in PAGES if page.startswith("docs/"))]:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / page).write_text((ROOT / page).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "docs/images").mkdir()
    for image in (ROOT / "docs/images").iterdir():
        (tmp_path / "docs/images" / image.name).write_bytes(image.read_bytes())
    with (tmp_path / "docs/limits.md").open("a") as page:
        page.write("\n[one](nowhere.md) [two](redis.md#nothing-of-the-kind)\n")
    built = build(tmp_path / "site", "--config-file", str(tmp_path / "mkdocs.yml"))
    assert built.returncode != 0
    assert "nowhere.md" in built.stderr
    assert "nothing-of-the-kind" in built.stderr


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere_in_the_repository_too(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", text):
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors(file), f"{page}: {target}#{anchor}"
