"""Whether our user may run all that a store runs, directly and in its scripts.

A guard that may not do its work fails, and the appends behind it are carried out all the same. So a server is not used
where a right is missing. Nothing is done to find out: Redis is asked what it would say.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from korvet_fast.store.redis.connection.clients import NoPermission

_RIGHTS = {  # and a command that needs it
    "+multi": "MULTI",
    "+exec": "EXEC",
    "+eval": "EVAL 0 0",
    "+xadd": "XADD {stream} * a b",
    "+xrange": "XRANGE {stream} - +",
    "+xrevrange": "XREVRANGE {stream} + -",
    "+xread": "XREAD STREAMS {stream} 0",
    "+xtrim": "XTRIM {stream} MAXLEN 1",
    "+xdel": "XDEL {stream} 1-1",
    "+xsetid": "XSETID {stream} 1-1",
    "+xinfo|stream": "XINFO STREAM {stream}",
    "+memory|usage": "MEMORY USAGE {stream}",
    "+xgroup|create": "XGROUP CREATE {stream} a 0",
    "+xgroup|setid": "XGROUP SETID {stream} a 0",
    "+xgroup|destroy": "XGROUP DESTROY {stream} a",
    "+hget": "HGET {state} a",
    "+hset": "HSET {state} a b",
    "+hmget": "HMGET {state} a",
    "+hgetall": "HGETALL {state}",
    "+hdel": "HDEL {state} a",
    "+hincrby": "HINCRBY {state} a 1",
    "+exists": "EXISTS {stream}",
    "+del": "DEL {stream}",
    "+unlink": "UNLINK {stream} {state}",
    "+set": "SET {state} a",
    "+pexpire": "PEXPIRE {state} 1",
    "+wait": "WAIT 0 1",
    "+info": "INFO",
    "+select": "SELECT 0",
    "+client|setname": "CLIENT SETNAME a",
    "+client|id": "CLIENT ID",
    "+client|unblock": "CLIENT UNBLOCK 1",
}
_CLUSTER = {
    "+asking": "ASKING",
    "+cluster|info": "CLUSTER INFO",
    "+cluster|slots": "CLUSTER SLOTS",
}
WAITAOF = "+waitaof"  # only where acknowledgements wait for a flush, and the server has it
_FLUSHING = {WAITAOF: "WAITAOF 1 0 1"}

# Arguments: for each command, how many words it is, and the words. Answers for each 1 if the user may run it, 0 if not;
# 1 if there is no such command.
TRY = """#!lua flags=no-writes
local out, at = {}, 1
while at <= #ARGV do
  local last = at + ARGV[at]
  local known, may = pcall(redis.acl_check_cmd, unpack(ARGV, at + 1, last))
  out[#out + 1] = (not known or may) and 1 or 0
  at = last + 1
end
return out
"""
# Error replies: to a command; in a script from Redis 7.2 on; in a script before.
_REFUSALS = ("NOPERM", "ERR ACL failure in script", "ERR The user executing the script can't")


def is_denial(error: str) -> bool:
    """Whether an error reply says that our user lacks a right."""
    return error.startswith(_REFUSALS)


async def find_missing(call: Callable[..., Awaitable[Any]], namespace: str, *, cluster: bool) -> list[str]:
    """The rights that our user lacks on a server, as words of ACL SETUSER. Raises `StoreError`.

    `call` sends a command to the server.
    """
    stream = f"{namespace}:@rights"
    asked = _RIGHTS | _FLUSHING | (_CLUSTER if cluster else {})
    commands = [text.format(stream=stream, state=f"{{{stream}}}:@state").split() for text in asked.values()]
    try:
        answers = await call("EVAL", TRY, 0, *(word for command in commands for word in (len(command), *command)))
    except NoPermission:
        return ["+eval"]
    return [right for right, may in zip(asked, answers, strict=True) if not may]


def explain(missing: list[str], namespace: str) -> str:
    """All words of ACL SETUSER that grant this; "" if nothing is missing."""
    return " ".join([*missing, f"~{namespace}:*", f"~{{{namespace}:*"]) if missing else ""
