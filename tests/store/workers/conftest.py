"""Workers run on uvloop. asyncio's own server loses a connection that it accepts in the turn in which it is closed."""

import pytest
import uvloop

from coroutines import run_coroutine_test


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return run_coroutine_test(pyfuncitem, uvloop.run)
