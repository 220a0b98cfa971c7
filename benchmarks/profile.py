"""Where a broker's loop spends its time under a load: py-spy looks at its stack some hundred times a second."""

import contextlib
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.peers.process import PeerError

Shares = dict[str, float]

PER_SECOND = 250  # more would slow the broker: it stands still while its stack is read
LOOP = "MainThread"
OTHER = "other"
BEGUN = "Sampling process"

# Whose time it is: the first of these words met, from the innermost frame outwards.
_WORDS = {
    "waiting": ("epoll_pwait",),
    "sockets": ("sendfile", "uv__", "UVStream", "TCPTransport", "uv_run"),
    "files": ("pwrite", "pread", "fsync", "fdatasync", "os_open", "statx"),
    "native": ("_native.abi3.so",),
    "net": ("korvet_fast/net/",),
    "wire": ("korvet_fast/wire/",),
    "core": ("korvet_fast/core/",),
    "store": ("korvet_fast/store/",),
    OTHER: ("benchmarks/peers/",),  # what a relay does in Python
}
PLACES = tuple(_WORDS)
_PLACE = re.compile("|".join(f"(?P<{place}>{'|'.join(map(re.escape, words))})" for place, words in _WORDS.items()))


@contextlib.contextmanager
def watch(pid: int, shares: Shares) -> Iterator[None]:
    """Profile a broker while inside; `shares` then holds where its loop's time went. Raises PeerError."""
    program = Path(sys.executable).with_name("py-spy")
    with tempfile.TemporaryDirectory() as directory:
        samples = Path(directory, "samples")
        command = [str(program), "record", "--native", "--idle", "--threads", "--format", "raw"]
        command += ["--rate", str(PER_SECOND), "--pid", str(pid), "--output", str(samples)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as sampling:
            assert sampling.stdout is not None
            printed = ""
            while BEGUN not in printed:
                line = sampling.stdout.readline()
                if not line:
                    raise PeerError(f"py-spy cannot look at process {pid}:\n{printed}")
                printed += line
            try:
                yield
            finally:
                sampling.send_signal(signal.SIGINT)
                sampling.communicate()
        shares |= divide(samples.read_text().splitlines())


def divide(samples: Iterable[str]) -> Shares:
    """The loop's part of py-spy's lines `frame;frame;frame count`, outermost first: each place's share of all."""
    found: Counter[str] = Counter()
    for line in samples:
        stack, _, count = line.rpartition(" ")
        thread, *frames = stack.split(";")
        if thread.endswith(LOOP):
            found[_place(reversed(frames))] += int(count)
    return {place: count / found.total() for place, count in found.items()}


def _place(frames: Iterable[str]) -> str:
    """The part of the broker that a stack belongs to; the stack is given innermost first."""
    places = (match.lastgroup for frame in frames if (match := _PLACE.search(frame)))
    return next(places, None) or OTHER
