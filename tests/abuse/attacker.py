"""One process of an attack: `python -m abuse.attacker '<json>'` strikes until its time is up, then says what came.

It yields to everything else on the machine, so that what is measured is the broker's doing.
"""

import json
import os
import sys
import time
from pathlib import Path

from abuse.attack import ATTACKS, Target
from abuse.table import FILES

NICE = 10


def strike_until(number: str, target: Target, worker: int) -> dict[str, int]:
    """Strike again and again. A broker may refuse, throttle and hang up: that is counted, and the next one begins."""
    strikes = ended = 0
    strike = ATTACKS[number].strike
    while target.left() > 0:
        try:
            ended += strike(target, worker) or 0
            strikes += 1
        except TimeoutError:
            continue  # the time is up
        except (OSError, EOFError):
            ended += 1
            time.sleep(0.02)
    return {"strikes": strikes, "ended": ended}


def main() -> None:
    assert FILES
    os.setpriority(os.PRIO_PROCESS, 0, NICE)
    given = json.loads(sys.argv[1])
    data = Path(given["data"]) if given["data"] else None
    print("ready", flush=True)
    seconds = float(sys.stdin.readline())  # all processes begin together
    until = time.monotonic() + seconds
    target = Target(given["port"], tuple(given["layouts"]), data, given["session_ms"], until)
    print(json.dumps(strike_until(given["number"], target, given["worker"])), flush=True)
    os._exit(0)  # threads that wait for the broker are not waited for


if __name__ == "__main__":
    main()
