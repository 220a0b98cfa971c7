"""What doctor says of topics that only grow, and of those that cannot be read."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic

from korvet_fast.cli import root
from korvet_fast.cli.doctor.finding import Verdict
from korvet_fast.cli.doctor.topics import judge_topics
from korvet_fast.core.topics.topic import Document
from korvet_fast.testing import broker_in_thread
from redis_server import RedisServer


def documents(**policies: str | None) -> dict[str, bytes]:
    return {
        f"topics/{name}": Document(bytes(16), 1, {} if policy is None else {"cleanup.policy": policy}).pack()
        for name, policy in policies.items()
    }


def test_topics_that_only_grow_are_named() -> None:
    found = documents(a="compact", b="delete", c="compact,delete", d=None, e="compact")
    (finding,) = judge_topics(found, "delete")
    assert finding.sentence.startswith("a, e: cleanup.policy=compact keeps every record")
    assert [finding.sentence.partition(":")[0] for finding in judge_topics(found, "compact")] == ["a, d, e"]
    assert list(judge_topics(documents(b="delete"), "delete")) == []
    (finding,) = judge_topics(documents(**dict.fromkeys("abcdefg", "compact")), "delete")
    assert finding.sentence.startswith("a, b, c, d, e and 2 more: ")


def test_topics_that_cannot_be_read_are_named() -> None:
    found = documents(b="compact") | {"topics/a": b"{torn", "topics/c": b"{}"}
    *damaged, grows = judge_topics(found, "delete")
    assert [one.verdict for one in damaged] == [Verdict.BAD] * 2
    told = [one.sentence.partition(": ")[0] for one in damaged]
    assert told == ["topic 'a' (topics/a in @registry)", "topic 'c' (topics/c in @registry)"]
    assert grows.sentence.startswith("b: ")


@pytest.mark.parametrize("place", ["files", "redis"])
def test_doctor_names_them(tmp_path: Path, redis_server: RedisServer, place: str) -> None:
    store = f"file:{tmp_path}/data" if place == "files" else f"{redis_server.url}?namespace=shop"
    with broker_in_thread(store) as address:
        admin = AdminClient({"bootstrap.servers": address})
        topic = NewTopic("connect-offsets", 1, config={"cleanup.policy": "compact"})
        admin.create_topics([topic])["connect-offsets"].result(60)
    said = CliRunner().invoke(root, ["doctor", "--store", store, "--listen", "kafka://127.0.0.1:0"]).output
    assert "connect-offsets: cleanup.policy=compact keeps every record" in said
