"""The ports that tests start their servers on: no two servers get the same, whether they run or not."""

import os
import subprocess
import sys

from redis_server import free_port

ASK = """
import sys
sys.path[:0] = {path!r}
from redis_server import _RESERVED
print([port for port in {ports!r} if _RESERVED.take(port)])
"""


def ask(ports: list[int]) -> str:
    """The ports among these that another process can have."""
    program = ASK.format(path=sys.path, ports=ports)
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def test_a_port_is_given_to_one_server_of_one_process() -> None:
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == 20
    assert ask(ports) == "[]"


def test_another_process_has_it_once_this_one_has_ended() -> None:
    ended = os.getpid() % 12_000  # below those that are given out, and no other session asks for it
    assert ask([ended]) == ask([ended]) == f"[{ended}]"
