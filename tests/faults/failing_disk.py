"""A block device that really fails writes: ext4 on a loop device whose file lies on a small tmpfs that can be filled.

What the file system itself needs (journal, tables) has its room from the beginning, so that only new data fails, as on
a thin-provisioned volume that has run full. A loop device calls a write a success if some of its pages have room; so
each write is one page.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from requirement import missing, require

_NAME = "korvet-failing-disk-"  # with the process that mounted it: what a killed one left is found by it
_SIZE = 32 << 20
_PAGE = 4096


class FailingDisk:
    """`place` is where it is mounted. Needs root."""

    def __init__(self, directory: Path) -> None:
        self.place = directory / "disk"
        self._backing = directory / "backing"
        self._image = self._backing / "image"
        self._filler = self._backing / "filler"

    def make(self) -> None:
        """Make the file system and mount it."""
        if os.geteuid() != 0:
            missing("only root may mount the failing disk of this test")
        for tool in ("mkfs.ext4", "fstrim", "losetup"):
            require(tool)
        _remove_leftovers()
        for place in (self.place, self._backing):
            place.mkdir()
        _mount(["-t", "tmpfs", "-o", f"size={2 * _SIZE}", f"{_NAME}{os.getpid()}", str(self._backing)])
        _allocate(self._image)
        options = ["-q", "-b", str(_PAGE), "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", "-J", "size=4"]
        subprocess.run(["mkfs.ext4", *options, self._image], check=True)
        _allocate(self._image)  # the tables and the journal, of which only what is not zero was written
        self.mount()
        subprocess.run(["fstrim", self.place], check=True)  # and nothing for data

    def mount(self) -> None:
        """Mount it: what is read now comes from the device."""
        _mount(["-o", "loop,errors=continue", str(self._image), str(self.place)])
        (device,) = (source for source, place in _mounts() if place == str(self.place))
        Path("/sys/block", Path(device).name, "queue/max_sectors_kb").write_text(str(_PAGE >> 10))

    def unmount(self) -> None:
        """Unmount it: nothing of it stays in the page cache."""
        subprocess.run(["umount", self.place], check=True)

    def fail(self) -> None:
        """From now on, writes fail that need room on the device."""
        with self._filler.open("wb", buffering=0) as file:
            for size in (1 << 20, _PAGE):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError as error:
                    assert error.errno == 28  # ENOSPC

    def heal(self) -> None:
        """Writes work again."""
        self._filler.unlink(missing_ok=True)

    def remove(self) -> None:
        """Unmount everything, whatever still uses it; the loop device goes with its last use."""
        for place in (self.place, self._backing):
            if os.path.ismount(place):
                subprocess.run(["umount", "--lazy", place], check=True)


def _mount(arguments: Sequence[str]) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        missing(f"this machine cannot mount the failing disk of this test ({done.stderr.strip()})")


def _allocate(image: Path) -> None:
    descriptor = os.open(image, os.O_RDWR | os.O_CREAT)
    try:
        os.posix_fallocate(descriptor, 0, _SIZE)
    finally:
        os.close(descriptor)


def _remove_leftovers() -> None:
    """Remove the disks of tests that were killed."""
    for source, place in _mounts():
        if source.startswith(_NAME) and not Path("/proc", source.removeprefix(_NAME)).exists():
            FailingDisk(Path(place).parent).remove()


def _mounts() -> list[tuple[str, str]]:
    """The mounted disks, and where they are mounted."""
    return [(line.split()[0], line.split()[1]) for line in Path("/proc/mounts").read_text().splitlines()]
