"""A real browser without a window, for pages that a test looks at."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver

from requirement import require

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
)


@contextmanager
def open_browser(profile: Path) -> Iterator[webdriver.Chrome]:
    """Chromium, with what it logs kept; `profile`: a directory of its own, which it makes."""
    options = webdriver.ChromeOptions()
    options.binary_location = require("chromium")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(require("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()
