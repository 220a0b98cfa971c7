"""Changes of run id and replid that are a new history, and the sentences about them."""

import pytest

from korvet_fast.store.redis.connection.replication_history import (
    ReplicationHistory,
    compare,
    read_info,
    read_replication_history,
)
from korvet_fast.store.redis.connection.url import RedisAddress

NONE = "0" * 40
A, B = RedisAddress("a", 1), RedisAddress("b", 2)
OLD = ReplicationHistory("run", "history", NONE, -1, True)


def test_info_is_read() -> None:
    text = b"# Server\r\nrun_id:run\r\n\r\n# Replication\r\nrole:master\r\nmaster_replid:history\r\n"
    text += b"master_replid2:" + NONE.encode() + b"\r\nsecond_repl_offset:-1\r\nslave0:ip=::1,port=2\r\n"
    info = read_info(text)
    assert info["slave0"] == "ip=::1,port=2"
    assert read_replication_history(info) == OLD


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (OLD, ""),
        (OLD._replace(history="other"), ""),  # its first replica came, or its last is long gone
        (OLD._replace(history="other", former="masters", shared_until=7), "a:1 was made a master anew"),
        (
            OLD._replace(history="other", former="history", shared_until=7),
            "a:1 was made a master anew: what was written from replication offset 7 on is lost",
        ),
        (OLD._replace(run_id="other"), "a:1 was restarted"),
        (OLD._replace(run_id="other", history="other"), "a:1 was restarted"),
        (
            ReplicationHistory("other", "other", "history", 7, True),
            "a:1 was restarted: what was written from replication offset 7 on is lost",
        ),
    ],
)
def test_one_server(new: ReplicationHistory, told: str) -> None:
    assert compare({A: OLD}, {A: new}, set()) == told


def test_a_replica_takes_over() -> None:
    heir = ReplicationHistory("other", "other", "history", 7, True)
    assert (
        compare({A: OLD}, {B: heir}, {A})
        == "b:2 took over from a:1: what was written from replication offset 7 on is lost"
    )
    assert compare({A: OLD}, {B: heir._replace(former="else")}, {A}) == "a:1 is no master any more"
    assert compare({A: OLD}, {}, {A}) == "a:1 is no master any more"


def test_a_master_that_does_not_answer_is_waited_for() -> None:
    other = ReplicationHistory("run2", "history2", NONE, -1, True)
    assert compare({A: OLD, B: other}, {B: other}, set()) == ""


def test_a_new_node_of_a_cluster_is_no_change() -> None:
    other = ReplicationHistory("run2", "history2", NONE, -1, True)
    assert compare({A: OLD}, {A: OLD, B: other}, set()) == ""


def test_everything_that_changed_is_told() -> None:
    known = {A: OLD, B: OLD._replace(run_id="run2")}
    now = {A: OLD._replace(run_id="run3"), B: OLD._replace(run_id="run4")}
    assert compare(known, now, set()) == "a:1 was restarted; b:2 was restarted"
