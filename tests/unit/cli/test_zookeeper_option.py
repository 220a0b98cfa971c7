"""`--zookeeper`: what is said when it cannot be."""

import pytest
from click.testing import CliRunner

from korvet_fast.cli import root


@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_without_a_listener_for_its_clients_it_is_refused(command: str) -> None:
    result = CliRunner().invoke(root, [command, "--zookeeper", "127.0.0.1:2181/kafka"])
    assert result.exit_code == 2
    assert "add --listen legacy://127.0.0.1:6667, or leave --zookeeper out" in " ".join(result.output.split())


def test_what_is_no_address_is_refused() -> None:
    result = CliRunner().invoke(root, ["serve", "--zookeeper", "localhost"])
    assert result.exit_code == 2
    assert "write HOST:PORT" in " ".join(result.output.split())
