"""`korvet-fast acl` at a broker with an authorizer, and at one without."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from broker_process import BrokerProcess
from korvet_fast.cli import root


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("acl")
    with BrokerProcess(directory / "data", "authorizer=acl", "super.users=User:ANONYMOUS") as running:
        yield running


def acl(broker: BrokerProcess, *arguments: str) -> Result:
    return CliRunner().invoke(root, ["acl", *arguments, "--bootstrap", f"127.0.0.1:{broker.port}"])


def list_rows(broker: BrokerProcess, *arguments: str) -> list[dict[str, str]]:
    result = acl(broker, "list", "--json", *arguments)
    assert result.exit_code == 0, result.output
    return list(json.loads(result.output))


def test_acls_are_added_listed_and_removed(broker: BrokerProcess) -> None:
    result = acl(
        broker, "add", "--allow", "User:ann", "--operation", "read", "--topic", "orders-*", "--group", "billing"
    )
    assert (result.exit_code, result.output) == (0, "added 2 ACLs\n")
    assert (
        acl(broker, "add", "--deny", "User:*", "--operation", "delete", "--topic", "*", "--host", "::1").exit_code == 0
    )
    assert acl(broker, "add", "--allow", "User:x", "--operation", "alter-configs", "--cluster").exit_code == 0
    found = list_rows(broker, "--topic", "orders-eu")
    assert [(row["principal"], row["permission"], row["name"], row["pattern"], row["host"]) for row in found] == [
        ("User:*", "deny", "*", "literal", "::1"),
        ("User:ann", "allow", "orders-", "prefixed", "*"),
    ]
    assert [row["name"] for row in list_rows(broker, "--cluster")] == ["kafka-cluster"]
    assert [row["operation"] for row in list_rows(broker, "--allow", "User:x")] == ["alter-configs"]
    assert "orders-" in acl(broker, "list").output
    # A name removes the ACLs of this very name only.
    assert acl(broker, "remove", "--topic", "orders-eu").output == "removed 0 ACLs\n"
    assert acl(broker, "remove", "--allow", "User:ann", "--topic", "orders-*").output == "removed 1 ACL\n"
    assert len(list_rows(broker)) == 3
    assert acl(broker, "remove", "--all").output == "removed 3 ACLs\n"
    assert list_rows(broker) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "--allow", "User:ann"), "say to whom"),
        (("remove",), "say which ACLs"),
        (("remove", "--all", "--topic", "a"), "say which ACLs"),
        (("add", "--allow", "ann", "--operation", "read", "--topic", "a"), "a principal is written as TYPE:NAME"),
        (("add", "--allow", "User:ann", "--operation", "any", "--topic", "a"), "'any' is not one of"),
    ],
)
def test_what_cannot_be_an_acl_is_explained(broker: BrokerProcess, arguments: tuple[str, ...], words: str) -> None:
    result = acl(broker, *arguments)
    assert result.exit_code != 0
    assert words in " ".join(result.output.split())


def test_a_broker_without_an_authorizer_says_so(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        result = acl(broker, "list")
    assert result.exit_code == 1
    assert "No Authorizer is configured" in result.output
