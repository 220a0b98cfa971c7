"""Every error of ours has a code and a message that may stand in a line."""

import pytest

from korvet_fast.errors import Errors
from korvet_fast.wire.text import errors
from korvet_fast.wire.text.errors import translate

CODES = {name for name in dir(errors) if name.isupper() and not name.startswith("_")}


@pytest.mark.parametrize("error", [error for error in Errors if error])
def test_errors_become_lines(error: Errors) -> None:
    code, message = translate(error)
    assert code in CODES
    assert message
    assert "\n" not in message


def test_a_reason_says_more() -> None:
    assert translate(Errors.UNKNOWN_MEMBER_ID, "why") == ("GENERATION_MISMATCH", "why")
