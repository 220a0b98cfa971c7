"""A broker with a config file of Kafka 0.7: what its settings come to for a client of 0.7."""

from pathlib import Path

from broker_process import BrokerProcess
from faults.redis.log import wait_for_line
from korvet_reference.legacy_client import EARLIEST, LegacyClient, encode_message
from redis_server import free_port

CONFIG = """
brokerid = 7
"num.partitions" = 3
"topic.partition.count.map" = "wide:5"
"max.message.size" = 100
"log.file.size" = 2000
"log.retention.hours" = 48
"""


def test_a_config_file_of_0_7(tmp_path: Path) -> None:
    file, port = tmp_path / "korvet.toml", free_port()
    file.write_text(CONFIG)
    arguments = ("--config-file", str(file), "--listen", f"legacy://127.0.0.1:{port}")
    exact, larger = encode_message(bytes(100)), encode_message(bytes(101))
    with BrokerProcess(tmp_path / "data", arguments=arguments) as broker, LegacyClient("127.0.0.1", port) as client:
        client.produce("t", 2, larger)
        client.produce("t", 2, exact)
        assert client.fetch("t", 2, 0) == exact
        for _ in range(30):
            client.produce("wide", 4, exact)
        end, edge, start = client.offsets("wide", 4, most=10)
        assert (start, edge, end) == (0, 19 * len(exact), 30 * len(exact))
        assert 18 * len(exact) <= 2000 < edge
        assert client.offsets("wide", 4, EARLIEST) == [0]
        wait_for_line(broker, "a message of 101 bytes, and 100 are taken")
