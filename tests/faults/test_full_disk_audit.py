"""The disk of the audit log fills up: clients are served as ever, and what is not written is counted and said."""

import json
from pathlib import Path

from broker_process import BrokerProcess
from faults.full_disk import fill, make_room
from kafka_server import make_batch, run
from raw_connection import connect

ROWS = 2000  # denied topics of a request


def test_a_full_disk_of_the_audit_log(small_disk: Path, tmp_path: Path) -> None:
    filler, log = small_disk / "filler", small_disk / "audit.log"
    filler.write_bytes(bytes(3_000_000))
    settings = ("authorizer=acl", f"audit.log.file={log}", "super.users=User:nobody")

    async def be_denied(rounds: int) -> None:
        rows = [{"name": f"denied-{number}", "partition_data": []} for number in range(ROWS)]
        async with connect(broker.port) as client:
            for _ in range(rounds):
                answer = await client.ask(0, 9, acks=-1, timeout_ms=1000, topic_data=rows)
                assert len(answer["responses"]) == ROWS
            assert (await client.produce("last", make_batch(b"x")))["error_code"] == 29

    with BrokerProcess(tmp_path / "data", *settings) as broker:
        run(lambda: be_denied(1))
        fill(filler)
        run(lambda: be_denied(5))  # as ever
        assert broker.stop() == 0
        make_room(filler)
        broker.start()
        run(lambda: be_denied(1))
    lines = log.read_bytes().split(b"\n")
    assert lines.pop() == b""
    torn = [line for line in lines if not line.endswith(b"}")]
    assert len(torn) <= 1  # the one that filled the disk
    assert sum(json.loads(line)["result"] == "Denied" for line in lines if line not in torn) == len(lines) - len(torn)
    words = " lines of the audit log"
    told = [json.loads(line)["message"] for line in broker.log if words in line]
    assert any(each.endswith("No space left on device") for each in told)
    reasons = ("No space left on device", "more came than can be written")  # the latter on a busy machine
    assert all(each.endswith(reasons) for each in told)
    dropped = sum(int(each.partition(words)[0]) for each in told)
    assert len(lines) - len(torn) + dropped == 7 * ROWS + 3
