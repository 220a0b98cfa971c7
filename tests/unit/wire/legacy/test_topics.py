"""Names that 0.7.2 takes for topics."""

import pytest

from korvet_fast.wire.legacy.topics import is_legal


@pytest.mark.parametrize("name", ["a", "a b", "a-1", "größe", "x" * 255, "...", "\u4e2d"])
def test_legal(name: str) -> None:
    assert is_legal(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\0", "a\x1f", "a\x7f", "a\x9f", "a\ue000", "a\uffff", "x" * 256]
)
def test_illegal(name: str) -> None:
    assert not is_legal(name)
