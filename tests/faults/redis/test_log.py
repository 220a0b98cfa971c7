"""What is read out of a broker's log is what it says there."""

from pathlib import Path

from broker_process import BrokerProcess
from faults.redis.log import reported


def test_a_loss_of_another_topic_is_none_of_this_one(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    for log, last in (("load:1", 4), ("overload:1", 6), ("load.2:1", 7), ("load:0", 9)):
        broker.log.append(f'"message": "{log}: records were lost: offsets 3 to {last}, which had been stored"\n')
    assert reported(broker, "load") == {(1, 3), (1, 4), *((0, offset) for offset in range(3, 10))}
