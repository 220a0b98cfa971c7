"""The pages of asv: measured here with a few benchmarks, opened in a real browser, and their graphs looked at.

KORVET_TEST_ASV_PAGE names a directory with pages that are there already, as of `make asv`: then those are opened.
"""

import functools
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from benchmarks.history.__main__ import CONFIG, asv, publish
from browser import open_browser
from requirement import require

ROOT = Path(__file__).parents[2]
SOME = r"Codec.time_call\('validate_batch', 1\)|requests.Requests.track_reference_loops"
SECONDS = 200  # for the browser to draw, on a busy machine
LATER = (NoSuchElementException, StaleElementReferenceException)  # what a page says that is just drawing
# Of a canvas: how many of its pixels are not blank.
PAINTED = """
const data = arguments[0].getContext("2d").getImageData(0, 0, arguments[0].width, arguments[0].height).data;
let painted = 0;
for (let at = 3; at < data.length; at += 4) painted += data[at] > 0;
return painted;
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A directory with the pages."""
    if made := os.environ.get("KORVET_TEST_ASV_PAGE"):
        return Path(made)
    for tool in ("git", "valgrind", "cc", "npm"):
        require(tool)
    place = tmp_path / "asv"
    place.mkdir()
    config = json.loads(CONFIG.read_text())
    config |= {"repo": str(ROOT), "benchmark_dir": str(CONFIG.parent / config["benchmark_dir"])}
    config |= {name: str(place / name) for name in ("env_dir", "results_dir", "html_dir")}
    own = place / "asv.conf.json"
    own.write_text(json.dumps(config))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place))  # where asv keeps what it was told of the machine
        asv("machine", "--yes", "--machine", "here", config=own)
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        this = ("--environment", f"existing:{sys.executable}", "--set-commit-hash", head.strip())
        asv("run", *this, "--machine", "here", "--quick", "--bench", SOME, config=own)
        publish(place / "html_dir", config=own)
    return place / "html_dir"


@pytest.fixture
def address(page: Path) -> Iterator[str]:
    """Where the pages are served."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(page))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    with open_browser(tmp_path / "chromium") as driver:
        yield driver


def names(page: Path) -> list[str]:
    """The benchmarks that were measured; the pages list those that were not as well."""
    found: list[str] = list(json.loads((page / "index.json").read_text())["benchmarks"])
    return sorted(name for name in found if summary(page, name).exists())


def summary(page: Path, name: str) -> Path:
    return page / "graphs" / "summary" / f"{name}.json"


def graphs(browser: webdriver.Chrome, inside: str) -> list[WebElement]:
    """Canvases under this selector with something drawn on them."""
    canvases = browser.find_elements(By.CSS_SELECTOR, f"{inside} canvas.flot-base")
    return [canvas for canvas in canvases if browser.execute_script(PAINTED, canvas) > 500]


def complaints(browser: webdriver.Chrome) -> list[str]:
    """The errors of the browser since the last call: what it could not load or run."""
    entries = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    return [entry["message"] for entry in entries if "/graphs/summary/" not in entry["message"]]  # see `names`


@pytest.mark.timeout(600)
def test_the_pages_show_their_graphs(page: Path, address: str, browser: webdriver.Chrome) -> None:
    """One test, as measuring and the browser are most of the time it takes."""
    wanted = names(page)
    assert any("Codec" in name for name in wanted) and any("Requests" in name for name in wanted)
    index = (page / "index.html").read_text()
    assert not [line for line in index.splitlines() if "http" in line and ("<script" in line or "<link" in line)]

    browser.get(address)
    grid = "#summarygrid-display"  # a small graph of each
    wait = WebDriverWait(browser, SECONDS, ignored_exceptions=LATER)
    wait.until(lambda _: len(graphs(browser, grid)) >= len(wanted))
    text = browser.find_element(By.CSS_SELECTOR, grid).text
    assert all(name.split(".")[-1] in text for name in wanted), text

    for name in wanted:
        browser.get(f"{address}#{name}")
        wait.until(lambda _, name=name: browser.find_element(By.ID, "title").text == name)
        wait.until(lambda _: graphs(browser, "#graph-display"))
    assert not complaints(browser)
