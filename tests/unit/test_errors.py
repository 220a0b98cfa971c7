"""The table of errors: each is named once, and nowhere else as a string."""

import ast
import json
import pickle
from pathlib import Path

import pytest

import korvet_fast
from korvet_fast import errors
from korvet_fast.errors import NONE, Errors, KorvetError

PACKAGE = Path(korvet_fast.__file__).parent


@pytest.mark.parametrize("error", Errors)
def test_an_error_is_its_name(error: Errors) -> None:
    assert error.value == ("" if error is NONE else error.name)
    assert (f"{error}", json.dumps(error), {error}) == (error.value, f'"{error.value}"', {error.value})
    assert pickle.loads(pickle.dumps(error)) is error
    assert bool(error) is (error is not NONE)
    assert error.sentence.endswith(".")


def test_an_exception_carries_a_member() -> None:
    error = KorvetError(Errors.INVALID_CONFIG, "too large")
    assert (error.error, str(error)) == (Errors.INVALID_CONFIG, "INVALID_CONFIG: too large")
    assert str(KorvetError(Errors.INVALID_CONFIG)) == f"INVALID_CONFIG: {Errors.INVALID_CONFIG.sentence}"


def test_no_error_is_named_by_a_string() -> None:
    named = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.value}"
        for path in PACKAGE.rglob("*.py")
        if path != Path(errors.__file__)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value and node.value in set(Errors)
    ]
    assert named == []
