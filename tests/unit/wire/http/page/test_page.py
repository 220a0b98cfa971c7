"""The page's views over a real store: what they show, what they refuse, and that nothing of a name acts."""

import asyncio
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import pytest

from batches import make_batch
from core_world import put, settle
from http_scene import TOKEN, ask, get, post, service
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.errors import KorvetError
from korvet_fast.wire.http.routes import ROUTES
from korvet_fast.wire.http.session import Service

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x1b[31m\u202e"
VOID = {"meta", "link", "input", "br", "polyline"}


class Checker(HTMLParser):
    """The text of a page; fails for tags that do not match, scripts that are not ours, and anything inline."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.text += " "
        values = dict(attributes)
        assert tag not in ("img", "iframe", "style", "object", "base"), tag
        assert tag != "script" or values == {"src": "/page.js", "defer": None}
        assert not any(name.startswith("on") or name == "style" for name in values), values
        for name in ("href", "src", "action"):
            assert (values.get(name) or "/").startswith(("/", "#", "data:,")), values
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check(body: bytes) -> str:
    """The text of a page, in one line."""
    checker = Checker()
    checker.feed(body.decode())
    checker.close()
    assert checker.open == []
    return " ".join(checker.text.split())


async def read(given: Service, path: str, status: int = 200, **fields: object) -> str:
    """The text of a view."""
    got, headers, body, _ = await ask(given, get(f"{path}?{urlencode(fields)}" if fields else path))
    assert got == status, body
    assert b"default-src 'none'" in headers
    assert b"x-frame-options: DENY" in headers
    return check(body)


async def fill(given: Service, records: int = 120) -> None:
    """A topic of two partitions, and a group that read the half of the first."""
    broker = given.broker
    topic = await broker.topics.create("orders", 2, {})
    for number in range(records):
        await settle(put(broker.partition("orders", 0), make_batch([f'{{"number":{number}}}'.encode()]), -1))
    committed = {TopicPartition("orders", 0): OffsetAndMetadata(records // 2, metadata=HOSTILE)}
    errors = await broker.groups.offsets.commit(HOSTILE, "", None, -1, committed)
    assert not any(errors.values())
    assert topic.partitions[0].high_watermark.offset == records


def test_every_view_has_its_values(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given:
            assert "There is no topic yet" in await read(given, "/")
            assert "No consumer group" in await read(given, "/groups")
            await fill(given)
            assert re.search(r"orders 2 120 [0-9.,]+ (B|KiB) ", await read(given, "/"))
            assert "No topic has that" in await read(given, "/", name="zzz")
            topic = await read(given, "/topic", name="orders")
            assert "compression.type" in topic
            assert re.search(r"0 \d+ \S+ 0 120 120 ", topic)
            first = await read(given, "/records", topic="orders", partition=0)
            assert '"number": 49' in first
            assert '"number": 50' not in first
            later = await read(given, "/records", topic="orders", partition=0, offset="100")
            assert '"number": 99' not in later
            assert '"number": 119' in later
            none = await read(given, "/records", topic="orders", partition=0, time="2100-01-01T00:00:00")
            assert "No record from here on" in none
            assert "1 groups" in await read(given, "/groups")
            group = await read(given, "/group", id=HOSTILE)
            assert "orders 0 60 120 60 " in group
            assert "this broker, controller" in await read(given, "/brokers")
            settings = await read(given, "/settings", name="num.partitions")
            assert "num.partitions" in settings
            assert "max.connections" not in settings

    asyncio.run(scenario())


def test_what_is_wrong_is_said_in_a_page(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given:
            await fill(given, 2)
            wrong = {
                "/topic?name=none": (404, "there is no topic 'none'"),
                "/records?topic=none": (404, "there is no partition 0"),
                "/records?topic=orders&partition=-1": (400, "give a whole number"),
                "/records?topic=orders&partition=9": (404, "there is no partition 9"),
                "/records?topic=orders&offset=x": (400, "give a whole number"),
                "/records?topic=orders&time=soon": (400, "write a time as"),
                "/records?topic=orders&time=1234567890123456": (400, "write a time as"),
                "/?start=x": (400, "give a whole number"),
                "/group?id=none": (404, "no group 'none'"),
                "/delete-records?topic=orders&partition=0&offset=3": (400, "give one from 0 to 2"),
                "/reset-offsets?id=none": (404, "no group 'none'"),
            }
            for path, (status, words) in wrong.items():
                got, _, body, _ = await ask(given, get(path))
                assert (got, words in check(body)) == (status, True), (path, body)

    asyncio.run(scenario())


def test_a_follower_of_much_gets_a_part_and_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given:
            await fill(given)
            _, _, body, _ = await ask(given, get("/records?topic=orders&partition=0&offset=10&live=1"))
            assert b'data-left-out="60"' in body
            assert b"offset=120&amp;live=1" in body
            assert body.count(b"<li>") == 50
            _, _, body, _ = await ask(given, get("/records?topic=orders&partition=0&live=1"))
            assert body.count(b"<li>") == 0

    asyncio.run(scenario())


def test_many_topics_come_in_parts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given:
            for number in range(250):
                await given.broker.topics.create(f"t{number:03}", 1, {})
            first = await read(given, "/")
            assert "250 topics, 250 partitions" in first
            assert "1 to 100 of 250" in first
            last = await read(given, "/", start=200)
            assert "201 to 250 of 250" in last
            assert "t249" in last
            assert "1 to 2 of 2" not in await read(given, "/", name="t24")

    asyncio.run(scenario())


@pytest.mark.parametrize("path", [path for path, route in ROUTES.items() if not route.public])
def test_a_token_is_wanted_for_every_view(tmp_path: Path, path: str) -> None:
    async def scenario() -> None:
        async with service(tmp_path, TOKEN) as given:
            status, headers, _, _ = await ask(given, get(path))
            assert status == 401
            assert (b"Basic realm" in headers) is (path != "/metrics")
            basic = "Authorization: Basic OjAxMjM0NTY3ODlhYmNkZWY="
            assert (await ask(given, get(path, basic)))[0] != 401
            assert (await ask(given, get(path, basic.replace("Oj", "!!"))))[0] == 401

    asyncio.run(scenario())


def test_a_topic_is_created_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given:
            fields = {
                "name": "new",
                "partitions": "3",
                "configs": "retention.ms=1000\r\n",
                "form_token": given.form_token,
            }
            status, headers, _, _ = await ask(given, post("/create-topic", **fields))
            assert status == 303
            assert b"location: /topic?name=new" in headers
            topic = given.broker.topics.get("new")
            assert topic is not None
            assert len(topic.partitions) == 3
            assert topic.config.text("retention.ms") == "1000"
            for change in (
                {},
                {"name": HOSTILE},
                {"name": "x", "configs": "nonsense"},
                {"name": "x", "partitions": "-1"},
            ):
                status, _, body, _ = await ask(given, post("/create-topic", **(fields | change)))
                assert status == 400
                assert "The topic was not created" in check(body)
            assert len(given.broker.topics) == 1

    asyncio.run(scenario())


def test_records_are_deleted_after_a_look(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given:
            await fill(given, 10)
            at = {"topic": "orders", "partition": "0", "offset": "4"}
            assert "Below offset" in await read(given, "/delete-records", topic="orders", partition=0)
            assert "4 offsets of orders, partition 0, below offset 4" in await read(given, "/delete-records", **at)
            assert given.broker.partition("orders", 0).log.start == 0
            token = given.form_token
            assert (await ask(given, post("/delete-records", form_token=token, **at)))[0] == 303
            assert given.broker.partition("orders", 0).log.start == 4
            assert (await ask(given, post("/delete-records", form_token=token, **(at | {"offset": "11"}))))[0] == 400
            assert given.broker.partition("orders", 0).log.start == 4

    asyncio.run(scenario())


def test_offsets_are_reset_after_a_look(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given:
            await fill(given, 10)
            runtime = given.broker.groups.partitions.runtimes.get(HOSTILE)
            assert runtime is not None
            fields = {"id": HOSTILE, "topic": "orders", "to": "latest"}
            assert "0 5 10 1 \u2013 0" in await read(given, "/reset-offsets", **fields)
            assert len(runtime.offsets.stored) == 1
            token = given.form_token
            assert (await ask(given, post("/reset-offsets", form_token=token, **fields)))[0] == 303
            assert {at.partition: one.offset for at, one in runtime.offsets.stored.items()} == {0: 10, 1: 0}
            one = fields | {"to": "offset", "offset": "3", "partition": "0"}
            assert (await ask(given, post("/reset-offsets", form_token=token, **one)))[0] == 303
            assert runtime.offsets.stored[TopicPartition("orders", 0)].offset == 3
            assert (await ask(given, post("/reset-offsets", form_token=token, **(fields | {"to": "x"}))))[0] == 400

    asyncio.run(scenario())


def test_offsets_in_a_topic_of_the_same_name_before_are_not_taken_for_those_of_the_present_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given:
            await fill(given, 10)
            topic = given.broker.topics.get("orders")
            assert topic is not None
            await given.broker.topics.delete(topic)
            await given.broker.topics.create("orders", 1, {})
            assert "orders 0 5 \u2013 \u2013 " in await read(given, "/group", id=HOSTILE)
            fields = {"id": HOSTILE, "topic": "orders", "to": "latest"}
            assert "0 \u2013 0" in await read(given, "/reset-offsets", **fields)

    asyncio.run(scenario())


ACTIONS = [path for path, route in ROUTES.items() if route.change is not None]


@pytest.mark.parametrize("path", ACTIONS)
def test_a_form_of_somebody_else_changes_nothing(tmp_path: Path, path: str) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given:
            await fill(given, 10)
            everything = {
                "name": "new", "topic": "orders", "partition": "0", "offset": "4", "id": HOSTILE, "to": "latest"
            }  # fmt: skip
            right = given.form_token
            cases = [
                post(path, **everything),
                post(path, form_token="x" * len(right), **everything),
                post(path, form_token="\u00e9", **everything),
                post(path, "Origin: http://evil.example", form_token=right, **everything),
                post(path, "Origin: null", form_token=right, **everything),
                post(path, "Origin: http://127.0.0.1:1", form_token=right, **everything),
                post(path, "Origin: http://[", form_token=right, **everything),
            ]
            for case in cases:
                status, _, body, _ = await ask(given, case)
                assert status == 403, body
            with pytest.raises(KorvetError):
                given.broker.partition("new", 0)
            assert given.broker.partition("orders", 0).log.start == 0
            runtime = given.broker.groups.partitions.runtimes.get(HOSTILE)
            assert runtime is not None
            assert runtime.offsets.stored[TopicPartition("orders", 0)].offset == 5
            fine = post(path, "Origin: http://127.0.0.1:9644", form_token=right, **everything)
            assert (await ask(given, fine))[0] == 303

    asyncio.run(scenario())


def test_a_view_without_a_form_takes_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given:
            status, headers, _, goes_on = await ask(given, post("/topic", name="x"))
            assert (status, goes_on) == (405, True)
            assert b"allow: GET, HEAD\r\n" in headers + b"\r\n"
            many = "&".join(f"a{number}=" for number in range(65))
            assert (await ask(given, get(f"/?{many}")))[::3] == (400, False)

    asyncio.run(scenario())
