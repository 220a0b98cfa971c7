"""A broker over files is killed under a client that commits (reliability F01): what was acknowledged is there."""

import os
from pathlib import Path

from broker_process import BrokerProcess
from faults.redis.committer import Committer
from faults.redis.records import GROUPS, create_topic

KILLS = int(os.environ.get("KORVET_TEST_KILLS", "3"))


def test_acknowledged_commits_survive_kill_9(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        create_topic(broker)
        for _ in range(KILLS):
            with Committer([broker], GROUPS) as committer:
                committer.wait_for(3)
                broker.kill()
            broker.start()
            committer.check()
