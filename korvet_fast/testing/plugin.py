"""The pytest plugin: `korvet` is the address of a broker for one test, `korvet_session` of one for the session.

Each xdist worker is a session of its own, so workers never share a broker. `--korvet-store` says where the records are.
"""

from collections.abc import Iterator

import pytest

_STORE = "korvet_store"


def pytest_addoption(parser: pytest.Parser) -> None:
    """--korvet-store, and the same in the configuration file: `korvet_store`."""
    doc = "where `korvet` and `korvet_session` keep records: a Redis (redis://HOST:PORT); default: temporary files"
    parser.addini(_STORE, doc, default="")
    parser.getgroup("korvet", "Korvet Fast").addoption("--korvet-store", metavar="URL", help=doc)


@pytest.fixture
def korvet(pytestconfig: pytest.Config) -> Iterator[str]:
    """The address of a Kafka broker of the test's own: `127.0.0.1:PORT`. It runs on a thread, and is empty."""
    yield from _run(pytestconfig)


@pytest.fixture(scope="session")
def korvet_session(pytestconfig: pytest.Config) -> Iterator[str]:
    """The address of a Kafka broker that all tests of the session share: each uses topics of its own."""
    yield from _run(pytestconfig)


def _run(config: pytest.Config) -> Iterator[str]:
    # pytest imports this file whether or not a test wants a broker.
    from korvet_fast.testing import broker_in_thread

    store = config.getoption("--korvet-store") or config.getini(_STORE) or None
    with broker_in_thread(store) as address:
        yield address
