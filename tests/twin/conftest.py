"""`impl`: each test that asks for it runs once per implementation of the contract."""

from types import ModuleType

import pytest

from twin.implementations import IMPLEMENTATIONS


@pytest.fixture(params=IMPLEMENTATIONS)
def impl(request: pytest.FixtureRequest) -> ModuleType:
    return IMPLEMENTATIONS[request.param]
