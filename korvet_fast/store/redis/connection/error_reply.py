"""Error replies in words for an operator: without Redis's script numbers, and with the remedy."""

import re
from typing import Final

_SCRIPT = re.compile(r" script: [0-9a-f]{40}, on @user_script:\d+\.?$")
_ADVICE: Final = {
    "OOM": "raise maxmemory, or take records away (log.retention.bytes): appends then go on by themselves",
    "WRONGTYPE": "another program has put something else in its place: take that away",
}


def explain_error(error: str) -> str:
    """Turn an error reply, without its leading `-`, into words for a person; its first word stays the first."""
    text = _SCRIPT.sub("", error)
    advice = _ADVICE.get(text.partition(" ")[0])
    return f"{text.rstrip('.')}; {advice}" if advice else text
