"""A control group of Linux (version 1) around a process: as many threads, or as much memory, as a test gives it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from requirement import missing


class ControlGroup:
    """A group in the hierarchy of one controller. `before`: a command that runs another one in the group."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.before = ("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(place))

    def read(self, name: str) -> str:
        return (self.place / name).read_text().strip()

    def write(self, name: str, value: int) -> None:
        (self.place / name).write_text(str(value))

    def limit_memory(self, size: int) -> None:
        """In bytes, on the disk too where the system swaps. More than before, or less."""
        names = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
        names = [name for name in names if (self.place / name).exists()]
        if size > int(self.read(names[0])):
            names.reverse()  # the limit with the disk is never the lower one
        for name in names:
            self.write(name, size)

    @property
    def used(self) -> int:
        """Bytes of memory that count, what the kernel has read of files among them."""
        return int(self.read("memory.usage_in_bytes"))

    @property
    def killed(self) -> int:
        """The number of processes that the kernel has killed because their memory was at its limit."""
        found = dict(line.split() for line in self.read("memory.oom_control").splitlines())
        return int(found["oom_kill"])


@contextmanager
def open_cgroup(controller: str) -> Iterator[ControlGroup]:
    """A group of its own, below that of this process. All processes in it have ended before the block does."""
    group = _find_place(controller) / f"korvet-test-{uuid4().hex}"
    group.mkdir()
    try:
        yield ControlGroup(group)
    finally:
        group.rmdir()


def _find_place(controller: str) -> Path:
    """This process's own group in the controller's hierarchy; the test is skipped where no group can be made there."""
    rows = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    mounts = [row[1] for row in rows if row[2] == "cgroup" and controller in row[3].split(",")]
    own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    paths = [path for _, names, path in own if controller in names.split(",")]
    if os.geteuid() != 0 or not mounts or not paths:
        missing(f"only root may make a control group, and only where {controller} of cgroup version 1 is mounted")
    return Path(mounts[0]) / paths[0].lstrip("/")
