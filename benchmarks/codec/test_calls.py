"""One measurement per call, size and implementation; `python -m benchmarks.codec` prints them as one table."""

from functools import cache
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import korvet_fast._native as native
import korvet_reference as reference
from benchmarks.codec import IMPLEMENTATIONS
from benchmarks.codec.calls import ONLY_RUST, Call, prepare
from benchmarks.codec.compiled import load_compiled

COUNTS = (1, 100, 10_000)


@cache
def calls(count: int) -> dict[str, Call]:
    return prepare(count)


@cache
def implementation(name: str) -> Any:
    return {"python": lambda: reference, "cython": load_compiled, "rust": lambda: native}[name]()


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("call", prepare(1))
def test_call(benchmark: BenchmarkFixture, call: str, count: int, name: str) -> None:
    if call in ONLY_RUST and name != "rust":
        pytest.skip("the reference does not have it")
    benchmark.extra_info.update(call=call, count=count, implementation=name)
    benchmark(calls(count)[call](implementation(name)))
