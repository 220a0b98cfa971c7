"""The lock that workers and their parent have together: who waits for whom, and what a refused start leaves."""

import os
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from korvet_fast.cli.family_lock import family_lock
from korvet_fast.store.embedded.lock import Lock
from korvet_fast.store.workers.locks import ByteLocks


def lock_by_a_process_that_is_gone(directory: Path) -> Lock:
    """The lock as a worker has it whose parent was killed."""
    lock = Lock(directory)
    lock.take()
    gone = subprocess.Popen(["true"])
    gone.wait()
    (directory / ".lock").write_text(f"{gone.pid}\n")
    return lock


def test_a_start_waits_for_the_workers_of_a_parent_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = lock_by_a_process_that_is_gone(tmp_path)
    monkeypatch.setattr("time.sleep", lambda _: lock.release())
    with family_lock(tmp_path):
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


def test_workers_that_outlive_their_parent_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = lock_by_a_process_that_is_gone(tmp_path)
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(click.ClickException) as refused, family_lock(tmp_path):
        pass
    assert "which is gone or in another container; its workers end within 30 s" in refused.value.message
    assert f"`fuser -v {tmp_path} {tmp_path}/.lock` names them" in refused.value.message
    lock.release()


def test_nobody_can_delete_the_locks_of_workers(tmp_path: Path) -> None:
    """A worker that starts has the same file as those that run, whatever happens to the directory."""
    with family_lock(tmp_path) as path:
        first = ByteLocks(path)
        assert first.take(1)
        shutil.rmtree(tmp_path)
        second = ByteLocks(path)
        assert not second.take(1)
        first.close()
        assert second.take(1)
        second.close()


def test_a_refused_start_changes_nothing(tmp_path: Path) -> None:
    """The next one, with one worker, need not look at each log."""
    (tmp_path / "checkpoint").write_text("{}")
    (tmp_path / "groups.json").write_text('{"group": {}}')
    with pytest.raises(click.ClickException, match="groups of the text protocol"), family_lock(tmp_path):
        pass
    assert (tmp_path / "checkpoint").exists()
    (tmp_path / "groups.json").unlink()
