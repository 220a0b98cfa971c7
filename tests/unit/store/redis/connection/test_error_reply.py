"""Error replies of Redis in the log."""

import pytest

from korvet_fast.store.redis.connection.error_reply import explain_error

SCRIPT = " script: 3503521777b9ad16143d7223f424400f4af4eb4c, on @user_script:4."


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            "OOM command not allowed when used memory > 'maxmemory'." + SCRIPT,
            "OOM command not allowed when used memory > 'maxmemory'; raise maxmemory, or take records away "
            "(log.retention.bytes): appends then go on by themselves",
        ),
        (
            "WRONGTYPE Operation against a key holding the wrong kind of value" + SCRIPT,
            "WRONGTYPE Operation against a key holding the wrong kind of value; another program has put something "
            "else in its place: take that away",
        ),
        ("ERR no such thing" + SCRIPT, "ERR no such thing"),
        ("NOPERM this user has no permissions", "NOPERM this user has no permissions"),
    ],
)
def test_script_numbers_go_and_advice_comes(error: str, said: str) -> None:
    assert explain_error(error) == said
