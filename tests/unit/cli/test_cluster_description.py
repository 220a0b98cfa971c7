"""What `cluster info` makes of answers that contradict each other."""

from collections.abc import Mapping
from typing import Any, cast

from korvet_fast.cli.cluster_description import describe_cluster
from korvet_fast.client.cluster import Cluster


class Answers:
    """A cluster of three brokers; each one's word of the metadata log's leader, and of its own end there."""

    def __init__(self, told: Mapping[int, tuple[int, int]]) -> None:
        self._told = told

    async def metadata(self, topics: None) -> Mapping[str, Any]:
        brokers = [{"node_id": broker, "host": "h", "port": 9000 + broker, "rack": None} for broker in self._told]
        return {"cluster_id": "c", "controller_id": 2, "topics": [], "brokers": brokers}

    async def ask_each(self, api: Any, asked: Any) -> Mapping[int, Any]:
        return {broker: self._answer(broker, *told) for broker, told in self._told.items()}

    def _answer(self, broker: int, leader: int, end: int) -> Mapping[str, Any]:
        voters = [{"replica_id": voter, "log_end_offset": end if voter == broker else -1} for voter in self._told]
        row = {"leader_id": leader, "leader_epoch": 4, "current_voters": voters}
        return {"error_code": 0, "topics": [{"partitions": [row]}]}


async def test_a_leader_that_says_it_does_not_lead_is_believed() -> None:
    found = await describe_cluster(cast(Cluster, Answers({1: (-1, -1), 2: (1, 7), 3: (1, 9)})))
    assert found.registry_leader is None
    (problem,) = found.problems
    assert problem.endswith("korvet-fast partition lead @registry 0 --broker 3 --bootstrap h:9003")


async def test_one_that_knows_of_no_leader_does_not_count() -> None:
    found = await describe_cluster(cast(Cluster, Answers({1: (1, 9), 2: (-1, 7), 3: (1, 9)})))
    assert (found.registry_leader, found.problems) == (1, [])
