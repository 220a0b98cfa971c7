"""The page of a real broker in a real browser: every view, wide and narrow, light and dark; forms; a view under load.

`KORVET_TEST_SCREENSHOTS=docs/images` writes the pictures of README anew (`make screenshots`).
"""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from broker_process import BrokerProcess
from browser import open_browser
from redis_server import free_port

WITHIN = 120.0  # seconds: a busy machine may take long
TOPICS = 2000
HOSTILE = "<script>document.title='taken'</script>\"'><img src=x onerror=\"document.title='taken'\">\x1b[31m\u202e"
VALUES = (HOSTILE.encode(), b"\xff\x00\x1b" * 200, b"x" * (1 << 20), b"[" * 40_000, b"", b'{"a":"</pre><b>"}')
MIB = 1 << 20

# What reaches out of the screen and stands in nothing that scrolls.
OUTSIDE = """
const scrolls = part => part && (part.scrollWidth > part.clientWidth + 1
    ? getComputedStyle(part).overflowX !== "visible" : scrolls(part.parentElement));
return [...document.querySelectorAll("body *")].filter(part =>
    !part.closest(".skip, svg") && part.getBoundingClientRect().right > innerWidth + 1 && !scrolls(part.parentElement)
).map(part => part.outerHTML.slice(0, 300));
"""
LOADED = "return performance.getEntriesByType('resource').map(entry => new URL(entry.name).host)"
RECORDS = "return document.querySelectorAll('#records > li').length"


class World(NamedTuple):
    """A broker with topics, records and groups, and its page."""

    broker: BrokerProcess
    port: int

    def url(self, path: str, **fields: object) -> str:
        return f"http://127.0.0.1:{self.port}{path}" + (f"?{urlencode(fields)}" if fields else "")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    port = free_port()
    arguments = ("--listen", f"http://127.0.0.1:{port}")
    data = tmp_path_factory.mktemp("page") / "data"
    with BrokerProcess(data, "message.max.bytes=2000000", arguments=arguments) as broker:
        fill(broker.bootstrap)
        yield World(broker, port)


def fill(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = [NewTopic(f"telemetry-{number:04}", 1) for number in range(TOPICS)]
    names += [NewTopic("orders", 3), NewTopic("z" * 249, 1), NewTopic("hostile", 1), NewTopic("busy", 1)]
    for future in admin.create_topics(names).values():
        future.result(WITHIN)
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 2_000_000})
    for number in range(600):
        items = f'[{{"sku":"A-{number % 9}","amount":{number % 5}}}]'
        order = f'{{"order":{number},"customer":"c-{number % 37}","items":{items}}}'
        producer.produce("orders", order, f"order-{number}", number % 3, headers={"trace": f"{number:08x}"})
    for value in VALUES:
        producer.produce("hostile", value, HOSTILE, headers={HOSTILE: HOSTILE})
    assert producer.flush(WITHIN) == 0
    for group, share in (("billing", 0.5), ("shipping", 0.9), (HOSTILE, 0.1)):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        offsets = [TopicPartition("orders", index, int(200 * share)) for index in range(3)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    with open_browser(tmp_path / "chromium") as driver:
        yield driver


def resize(browser: webdriver.Chrome, width: int, scheme: str) -> None:
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def check(browser: webdriver.Chrome, width: int, port: int) -> None:
    """The page that is open fits, loads nothing from elsewhere, obeys nothing of what it shows, and has no errors."""
    place = browser.current_url
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width, place
    assert browser.execute_script(OUTSIDE) == [], place
    assert set(browser.execute_script(LOADED)) <= {f"127.0.0.1:{port}"}, place
    assert browser.title.endswith("· Korvet Fast"), browser.title
    assert browser.find_elements(By.CSS_SELECTOR, "img, iframe, script:not([src='/page.js']), main b[onclick]") == []
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == [], place


VIEWS: dict[str, tuple[str, dict[str, object], str]] = {
    "topics": ("/", {}, "2,00"),
    "topics-found": ("/", {"name": "or"}, "orders"),
    "topics-after": ("/", {"start": 1900}, "telemetry-19"),
    "topic": ("/topic", {"name": "orders"}, "compression.type"),
    "topic-long-name": ("/topic", {"name": "z" * 249}, "compression.type"),
    "records": ("/records", {"topic": "orders", "partition": 0, "offset": 150}, '"customer": "c-'),
    "records-time": ("/records", {"topic": "orders", "partition": 1, "time": "2020-01-01T00:00:00"}, "order-1"),
    "records-hostile": ("/records", {"topic": "hostile", "partition": 0}, r"\x1b[31m\u202e"),
    "follow": ("/records", {"topic": "orders", "partition": 0, "live": 1}, "Waiting for records"),
    "groups": ("/groups", {}, "billing"),
    "group": ("/group", {"id": "billing"}, "300"),
    "group-hostile": ("/group", {"id": HOSTILE}, r"\x1b[31m\u202e"),
    "brokers": ("/brokers", {}, "this broker, controller"),
    "settings": ("/settings", {}, "message.max.bytes"),
    "create": ("/create-topic", {}, "Create a topic"),
    "delete": ("/delete-records", {"topic": "orders", "partition": 0, "offset": 7}, "will be gone"),
    "reset": ("/reset-offsets", {"id": "billing", "topic": "orders", "to": "latest"}, "The group will go on"),
    "wrong": ("/topic", {"name": HOSTILE}, "there is no topic"),
}
PICTURES = ("topics", "records")  # of README


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_every_view_fits_and_shows_its_values(
    world: World, browser: webdriver.Chrome, tmp_path: Path, width: int, scheme: str
) -> None:
    resize(browser, width, scheme)
    for name, (path, fields, words) in VIEWS.items():
        browser.get(world.url(path, **fields))
        assert words in browser.find_element(By.TAG_NAME, "body").text, name
        if name == "wrong":
            assert len([entry for entry in browser.get_log("browser") if "404" in entry["message"]]) == 1
        check(browser, width, world.port)
        picture = browser.get_screenshot_as_png()
        (tmp_path / f"{name}.png").write_bytes(picture)
        place = os.environ.get("KORVET_TEST_SCREENSHOTS")
        if place and name in PICTURES and (width, scheme) == (1280, "light"):
            (Path(place) / f"page-{name}.png").write_bytes(picture)


def test_long_values_are_cut_and_binary_ones_are_digits(world: World, browser: webdriver.Chrome) -> None:
    browser.get(world.url("/records", topic="hostile", partition=0))
    texts = []
    while True:  # a page reads half a megabyte of batches, and a larger one alone
        rows = browser.find_elements(By.CSS_SELECTOR, "#records > li .value")
        assert rows
        texts += [row.text for row in rows]
        following = browser.find_elements(By.CSS_SELECTOR, "nav [rel=next]")
        if not following:
            break
        following[0].click()
    assert len(texts) == len(VALUES)
    assert "<img src=x" in texts[0]
    assert "600 bytes, the first 256 are shown" in texts[1]
    assert "1,048,576 bytes, the first 4,096 characters are shown" in texts[2]
    assert all(len(text) < 5000 for text in texts)
    assert '"a": "</pre><b>"' in texts[5]


def test_lag_over_time_is_drawn(world: World, browser: webdriver.Chrome) -> None:
    browser.get(world.url("/groups"))
    drawn = "svg.lag polyline"
    WebDriverWait(browser, WITHIN).until(lambda _: len(browser.find_elements(By.CSS_SELECTOR, drawn)) >= 3)
    words = browser.execute_script("return [...document.querySelectorAll('svg.lag')].map(each => each.ariaLabel)")
    assert any("now 300" in each for each in words), words


def test_the_keyboard_is_enough(world: World, browser: webdriver.Chrome) -> None:
    browser.get(world.url("/"))
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("class") == "skip"
    for _ in range(3):
        browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Groups"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    WebDriverWait(browser, WITHIN).until(lambda _: browser.current_url.endswith("/groups"))
    browser.get(world.url("/"))
    browser.find_element(By.NAME, "name").send_keys("order", Keys.ENTER)
    WebDriverWait(browser, WITHIN).until(lambda _: "name=order" in browser.current_url)
    browser.execute_script("document.querySelector('#live td a').focus()")  # what has the focus is not replaced
    assert browser.switch_to.active_element.text == "orders"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    WebDriverWait(browser, WITHIN).until(lambda _: browser.current_url.endswith("/topic?name=orders"))


def click(browser: webdriver.Chrome, words: str) -> None:
    browser.find_element(By.XPATH, f"//button[contains(., '{words}')]").click()


def test_changes_are_confirmed_and_made(world: World, browser: webdriver.Chrome) -> None:
    def wait_for(done: Callable[[], bool]) -> None:
        # What was found on a page that is just being left is stale, or by Chromium's driver an "unknown error".
        waiting = WebDriverWait(browser, WITHIN, ignored_exceptions=[WebDriverException])
        waiting.until(lambda _: done())

    def text() -> str:
        return browser.find_element(By.TAG_NAME, "main").text

    browser.get(world.url("/create-topic"))
    browser.find_element(By.NAME, "name").send_keys("made-here")
    browser.find_element(By.NAME, "configs").send_keys("retention.ms=7777")
    click(browser, "Create")
    wait_for(lambda: browser.current_url.endswith("/topic?name=made-here"))
    wait_for(lambda: "7777" in text())
    browser.get(world.url("/create-topic"))
    browser.find_element(By.NAME, "name").send_keys("made-here")
    click(browser, "Create")
    wait_for(lambda: "The topic was not created" in text())
    browser.get(world.url("/delete-records", topic="orders", partition=2))
    browser.find_element(By.NAME, "offset").clear()
    browser.find_element(By.NAME, "offset").send_keys("20")
    click(browser, "Look at the change")
    wait_for(lambda: "20 offsets" in text())
    click(browser, "Delete the records")
    wait_for(lambda: browser.current_url.endswith("/topic?name=orders"))
    browser.get(world.url("/records", topic="orders", partition=2))
    assert "Offsets 20 to 200" in text()
    browser.get(world.url("/group", id="shipping"))
    Select(browser.find_element(By.NAME, "to")).select_by_value("earliest")
    click(browser, "Look at the change")
    wait_for(lambda: "committed now" in text())
    click(browser, "Reset 3 offsets")
    wait_for(lambda: "/group?id=shipping" in browser.current_url)
    lags = "return [...document.querySelectorAll('td[data-name=lag]')].map(each => each.textContent)"
    wait_for(lambda: browser.execute_script(lags) == ["200", "200", "180"])


class Load:
    """Records without a pause, from a thread of its own."""

    def __init__(self, bootstrap: str) -> None:
        self.sent = 0
        self.failed: list[object] = []
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _note(self, error: object, _: object) -> None:
        self.sent += 1
        if error is not None:
            self.failed.append(error)

    def _run(self) -> None:
        while not self._stop.is_set():
            for _ in range(500):
                self._producer.produce("busy", b"v" * 500, on_delivery=self._note)
            self._producer.flush(WITHIN)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def test_a_partition_under_load_is_followed_within_bounds(world: World, browser: webdriver.Chrome) -> None:
    def count() -> int:
        return int(browser.execute_script(RECORDS))

    process = psutil.Process(world.broker.pid)
    with Load(world.broker.bootstrap) as load:
        browser.get(world.url("/records", topic="busy", partition=0, live=1))
        WebDriverWait(browser, WITHIN).until(lambda _: count() == 200)
        sent, memory = load.sent, process.memory_info().rss
        followed = browser.find_element(By.ID, "followed")
        for _ in range(8):
            before = followed.text
            WebDriverWait(browser, WITHIN).until(lambda _, before=before: followed.text != before)
            assert count() == 200
        assert "that came between are not shown" in followed.text
        click(browser, "Pause")
        paused = followed.text
        later = load.sent
        WebDriverWait(browser, WITHIN).until(lambda _: load.sent > later + 2000)
        assert followed.text == paused
        click(browser, "Go on")
        WebDriverWait(browser, WITHIN).until(lambda _: followed.text != paused)
        assert load.sent > sent
        assert process.memory_info().rss < memory + 64 * MIB
    assert load.failed == []
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
