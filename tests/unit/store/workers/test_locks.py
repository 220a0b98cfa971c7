"""Locks of bytes: one holder each, and free when the holder is gone."""

import signal
import subprocess
import sys
from pathlib import Path

from korvet_fast.store.workers.locks import ByteLocks

CHILD = """
import sys, time
from pathlib import Path
from korvet_fast.store.workers.locks import ByteLocks
locks = ByteLocks(Path(sys.argv[1]))
print(locks.take(2, "child"), flush=True)
time.sleep(600)
"""


def test_a_byte_has_one_holder(tmp_path: Path) -> None:
    one, two = ByteLocks(tmp_path / "lock"), ByteLocks(tmp_path / "lock")
    assert one.take(0)
    assert not two.take(0)
    assert two.take(1, "two")
    assert not one.take(1, "one")
    assert one.has(1, "two")
    assert not one.has(1, "one")
    one.release(0)
    assert two.take(0)
    two.close()
    assert not one.has(1, "two")
    assert one.take(0)
    assert one.take(1, "one")
    one.close()
    one.close()
    assert one.has(0, "nobody"), "nothing is certain any more"


def test_a_former_holder_is_gone_when_another_has_its_byte(tmp_path: Path) -> None:
    one, two, asking = (ByteLocks(tmp_path / "lock") for _ in range(3))
    assert one.take(3, "a" * 16)
    one.close()
    assert two.take(3, "b" * 16)
    assert not asking.has(3, "a" * 16)
    assert asking.has(3, "b" * 16)
    two.close()
    asking.close()


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    asking = ByteLocks(tmp_path / "lock")
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path / "lock")], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "True\n"
        assert asking.has(2, "child")
        assert not asking.take(2)
        child.send_signal(signal.SIGSTOP)  # one that stands still keeps what it has
        assert not asking.take(2)
    finally:
        child.kill()
        child.communicate()
    assert not asking.has(2, "child")
    assert asking.take(2, "me")
    asking.close()
