"""Kafka's scripts that ask what only few brokers have: each ends well, and says what is true here."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.java_tools import STORES, Tools, open_broker

_TOOLS = "org.apache.kafka.tools"
_CONFIGS = "kafka.admin.ConfigCommand"
_REASSIGN = f"{_TOOLS}.reassign.ReassignPartitionsCommand"
# Class, arguments, what it says; {plan}: a file with the assignment that there is.
SCRIPTS = {
    "metadata-quorum status": (f"{_TOOLS}.MetadataQuorumCommand", "describe --status", "LeaderId: 1"),
    "metadata-quorum replication": (f"{_TOOLS}.MetadataQuorumCommand", "describe --replication", "Leader"),
    "leader-election": (
        f"{_TOOLS}.LeaderElectionCommand",
        "--election-type preferred --all-topic-partitions",
        "Valid replica already elected",
    ),
    "configs users": (_CONFIGS, "--describe --entity-type users", ""),
    "configs a user": (_CONFIGS, "--describe --entity-type users --entity-name ada", ""),
    "configs clients": (_CONFIGS, "--describe --entity-type clients", ""),
    "configs groups": (_CONFIGS, "--describe --entity-type groups", ""),
    "configs client-metrics": (_CONFIGS, "--describe --entity-type client-metrics", ""),
    "configs brokers": (_CONFIGS, "--describe --all --entity-type brokers", "inter.broker.protocol.version=4.0"),
    "reassign list": (_REASSIGN, "--list", "No partition reassignments found"),
    "reassign execute": (_REASSIGN, "--execute --reassignment-json-file {plan}", "Successfully started"),
    "reassign verify": (_REASSIGN, "--verify --reassignment-json-file {plan}", "Reassignment of partition t-0 is"),
    "features": (f"{_TOOLS}.FeatureCommand", "describe", "FinalizedVersionLevel: 4.0"),
    "broker-api-versions": (f"{_TOOLS}.BrokerApiVersionsCommand", "", "DescribeQuorum(55): 0 to 2"),
    "get-offsets": (f"{_TOOLS}.GetOffsetShell", "", "t:0:"),
    "log-dirs": (f"{_TOOLS}.LogDirsCommand", "--describe", '"partition":"t-0"'),
    "consumer-groups": (f"{_TOOLS}.consumer.group.ConsumerGroupCommand", "--describe --all-groups", ""),
    "groups": (f"{_TOOLS}.GroupsCommand", "--list", "GROUP"),
    "streams-application-reset": (
        f"{_TOOLS}.StreamsResetter",
        "--application-id app --input-topics t",
        "Topic: t Partition: 0",
    ),
    "topics": (f"{_TOOLS}.TopicCommand", "--describe", "Leader: 1"),
}


@pytest.fixture(scope="module", params=STORES)
def tools(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    with open_broker(request.param, tmp_path_factory.mktemp("scripts")) as broker:
        tools = Tools(broker)
        tools.topics("--create", "--topic", "t", "--partitions", "2")
        yield tools


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_ends_without_a_stack_trace(tools: Tools, tmp_path: Path, script: str) -> None:
    tool, arguments, said = SCRIPTS[script]
    plan = tmp_path / "plan.json"
    rows = [{"topic": "t", "partition": 0, "replicas": [1]}]
    plan.write_text(json.dumps({"version": 1, "partitions": rows}))
    printed = tools.run(tool, *arguments.format(plan=plan).split())
    assert said in " ".join(printed.split())
    assert "Exception" not in printed
    assert "\tat " not in printed


def test_acls_are_refused_by_name(tools: Tools) -> None:
    """The tool shows a stack trace with whatever a broker refuses, Kafka without an authorizer too."""
    status, output, errors = tools._run(f"{_TOOLS}.AclCommand", ("--list",), "")
    assert status == 1
    assert "SecurityDisabledException: No Authorizer is configured" in output + errors


def test_a_client_that_wants_to_log_in_is_told_at_once(tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
    said = tools.refuse("topics", "--list", "--command-config", str(file))
    assert "Unexpected handshake request with client mechanism PLAIN" in said
