"""Doctor takes the options of `serve`, those of several workers among them: it looks at the addresses of each."""

from pathlib import Path

from click.testing import CliRunner

from faults.redis.load import create_topic
from faults.workers import Workers
from korvet_fast.cli import root


def ask(workers: Workers, *listen: str) -> list[str]:
    """What doctor says of addresses, line by line."""
    said = CliRunner().invoke(root, ["doctor", "--store", workers.store, *listen, *workers.arguments]).output
    return [" ".join(line.split()) for line in said.splitlines() if " listen " in line or " advertise " in line]


def test_the_addresses_of_all_workers_before_and_while_they_serve(tmp_path: Path) -> None:
    workers = Workers(tmp_path / "data", 2)
    with workers:
        listen = ("--listen", f"kafka://{workers.bootstrap}")
        first, second = workers.ports
        create_topic(workers.bootstrap, "load", 6)
        workers.wait_for_leaders("load", 1, 2)  # each has heard of the other
        assert ask(workers, *listen) == [
            f"ok listen a broker answers at kafka://127.0.0.1:{first}",
            f"ok advertise it sends clients to 127.0.0.1:{first}, and that answers",
            f"ok advertise it sends clients to 127.0.0.1:{second}, and that answers",
            f"ok listen a broker answers at kafka://127.0.0.1:{second}",
        ]
    assert ask(workers, *listen) == [
        f"ok listen kafka://127.0.0.1:{first} is free",
        "ok listen only programs on this machine can connect to 127.0.0.1",
        f"ok listen kafka://127.0.0.1:{second} is free",
    ]


def test_what_serve_refuses_of_workers_doctor_refuses() -> None:
    said = CliRunner().invoke(root, ["doctor", "--worker-ports", "9100"])
    assert said.exit_code == 2
    assert "--worker-ports is for --workers 2 and more" in said.output
