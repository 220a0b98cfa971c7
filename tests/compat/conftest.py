"""Fixtures of the tests with real clients."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from uuid import uuid4

import pytest

from broker_process import BrokerProcess
from compat.client import Client, open_client
from compat.sheet import PAGE, Outcome, complete, draw


@pytest.fixture(scope="module")
def tidy_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Small segments, and retention looks five times a second."""
    settings = ("log.segment.bytes=4096", "log.retention.check.interval.ms=200", "auto.create.topics.enable=false")
    with BrokerProcess(tmp_path_factory.mktemp("life") / "data", *settings) as running:
        yield running


@pytest.fixture(scope="module")
def clients(broker: BrokerProcess) -> Iterator[Callable[[str], Client]]:
    """The client of a name at the module's broker, opened when it is first asked for."""
    with ExitStack() as ending:

        @cache
        def find(name: str) -> Client:
            return ending.enter_context(open_client(name, broker.bootstrap))

        yield find


@pytest.fixture
def topic() -> str:
    """A name of the test's own."""
    return f"t-{uuid4().hex[:12]}"


class Notes:
    """Writes down what became of each cell, and draws the page from all of them."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            for name, value in report.user_properties:
                if name == "cell":
                    self.outcomes.append(Outcome(*value, passed=report.passed))  # type: ignore[misc]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.outcomes and complete(self.outcomes):
            page = draw(self.outcomes)
            PAGE.write_text(page)
            terminalreporter.write("\n" + page)
        elif os.environ.get("KORVET_TEST_MATRIX") == "full":
            terminalreporter.write(f"\nNot every cell was tested: {PAGE.name} stays as it was.\n")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Notes())
