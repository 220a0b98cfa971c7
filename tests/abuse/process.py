"""The resources that a process holds, read from /proc."""

import threading
from pathlib import Path


def memory_of(pid: int) -> int:
    """Resident bytes that are the process's own: mapped pages of files belong to the page cache."""
    found = 0
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(("RssAnon:", "RssShmem:")):
            found += int(line.split()[1]) * 1024
    return found


def descriptors_of(pid: int) -> tuple[int, int]:
    """Open files that are no sockets, and sockets."""
    files = sockets = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            is_socket = str(entry.readlink()).startswith("socket:")
        except FileNotFoundError:
            continue  # closed meanwhile
        files, sockets = files + (not is_socket), sockets + is_socket
    return files, sockets


class Sampler(threading.Thread):
    """Watches the memory and the sockets of a process until `enough` is set; `too_much` is set above `guard` bytes."""

    def __init__(self, pid: int, guard: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._guard = pid, guard
        self.enough, self.too_much = threading.Event(), threading.Event()
        self.memory = self.sockets = 0

    def run(self) -> None:
        while not self.enough.wait(0.02):
            try:
                self.memory = max(self.memory, memory_of(self._pid))
                self.sockets = max(self.sockets, descriptors_of(self._pid)[1])
            except (FileNotFoundError, ProcessLookupError):
                return  # it died, which others notice
            if self.memory > self._guard:
                self.too_much.set()
