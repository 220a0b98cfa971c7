"""`serve --workers N`: the parent, a small process that starts the workers, starts them again, and ends them.

A worker is a copy of the parent (fork), made before any thread and any loop: it has what the parent has read and
imported, and starts in milliseconds. The parent is told nothing by messages: it sees that a worker has ended, and a
number in memory that a worker's loop makes grow.
"""

import asyncio
import logging
import mmap
import multiprocessing
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Final

import click

from korvet_fast.cli.broker_options import BrokerOptions
from korvet_fast.cli.signals import asked_to_end

log = logging.getLogger("korvet_fast")

_TICK: Final = 0.1  # seconds between two signs of life, and between two looks of the parent
_SPACE: Final = 0.5  # seconds from one start of a worker to its next, at least
_LIVELY: Final = 1.0  # seconds of silence that mean nothing
_ALL_SILENT: Final = 5  # times as long all workers may be silent at once: it may be the disk that stands still
_LONGEST: Final = 30.0  # seconds between two starts of a worker that does not live as long
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_LIFE: Final = struct.Struct("qq")  # signs of life, and whether clients were ever served

_processes = multiprocessing.get_context("fork")


class Life:
    """What a worker and the parent both see: memory that a worker writes to."""

    def __init__(self, memory: mmap.mmap, number: int) -> None:
        self._memory = memory
        self._at = (number - 1) * _LIFE.size

    def begin(self) -> None:
        """In the parent, before the worker starts."""
        _LIFE.pack_into(self._memory, self._at, 0, 0)

    def beat(self) -> None:
        """In the worker: its loop turns."""
        signs, served = _LIFE.unpack_from(self._memory, self._at)
        _LIFE.pack_into(self._memory, self._at, signs + 1, served)

    def note_ready(self) -> None:
        """In the worker: it serves clients."""
        signs, _ = _LIFE.unpack_from(self._memory, self._at)
        _LIFE.pack_into(self._memory, self._at, signs, 1)

    @property
    def signs(self) -> int:
        return int(_LIFE.unpack_from(self._memory, self._at)[0])

    @property
    def was_ready(self) -> bool:
        return bool(_LIFE.unpack_from(self._memory, self._at)[1])


class Worker:
    """A worker as the parent sees it: its process, when it is to start, and for how long it was silent."""

    def __init__(self, number: int, options: BrokerOptions, life: Life) -> None:
        self.number = number
        self.options = options
        self.life = life
        self.process: multiprocessing.process.BaseProcess | None = None
        self.due = 0.0  # monotonic: it may start again
        self.starts = 0
        self._served = False  # in an earlier life
        self._started = 0.0
        self._failures = 0  # starts in a row after which it did not serve for long
        self._signs = -1
        self.silence = 0.0  # seconds without a sign of life
        self._killed = False  # said once: the process is seen to have ended a moment later

    @property
    def has_served(self) -> bool:
        """Whether it has ever become ready."""
        return self._served or self.life.was_ready

    def start(self, run: Callable[["Worker"], None]) -> None:
        """Start the process, in which `run` is called. Where the system has no room for one, it is due again later."""
        self.starts += 1
        self._served = self.has_served
        self.life.begin()
        self._signs, self.silence, self._killed, self._started = -1, 0.0, False, time.monotonic()
        process = _processes.Process(target=run, args=(self,), name=f"worker {self.number}")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the parent's handlers are not the worker's
        try:
            _start(process)
            self.process = process
        except OSError as error:
            self._note_failure()
            pause = self.due - time.monotonic()
            log.error("worker %d cannot be started (%s): tried again in %.1f s", self.number, error.strerror, pause)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def note_end(self) -> int:
        """The process has ended: find out when the next one may start. Returns the exit code."""
        assert self.process is not None
        self.process.join()
        code = self.process.exitcode or 0
        self.process = None
        if self.life.was_ready and time.monotonic() - self._started > _LONGEST:
            self._failures = 0
            self.due = self._started + _SPACE
        else:
            self._note_failure()
        return code

    def _note_failure(self) -> None:
        self._failures += 1
        self.due = self._started + min(_LONGEST, _SPACE * 2 ** min(self._failures, 10))  # 2**1024 is no float

    def listen(self, passed: float) -> None:
        """Look for a sign of life; `passed`: seconds since the last call."""
        signs = self.life.signs
        self.silence = self.silence + passed if signs == self._signs else 0.0
        self._signs = signs

    def kill_if_silent(self, patience: float) -> None:
        """Kill the process after `patience` seconds without a sign of life."""
        if self.silence > patience and not self._killed and self.process is not None and self.process.is_alive():
            log.error("worker %d gave no sign of life for %g s and is killed", self.number, patience)
            self.process.kill()
            self._killed = True


def kill_silent(workers: Sequence[Worker], passed: float, patience: float) -> None:
    """Kill the workers that give no sign of life while others do, or all after a multiple of `patience`.

    `passed`: seconds since the last call.
    """
    for worker in workers:
        worker.listen(passed)
    if all(worker.silence > min(_LIVELY, patience / 2) for worker in workers if worker.process is not None):
        patience *= _ALL_SILENT
    for worker in workers:
        worker.kill_if_silent(patience)


class Parent:
    """Runs the workers until SIGTERM or Ctrl-C; a second one kills them.

    `serve` is called in each worker's process, and returns when the worker has ended.
    """

    def __init__(self, plans: Sequence[BrokerOptions], serve: Callable[["Worker", "Companion"], None]) -> None:
        self._serve = serve
        memory = mmap.mmap(-1, len(plans) * _LIFE.size)
        self._workers = [Worker(number, plan, Life(memory, number)) for number, plan in enumerate(plans, 1)]
        self._patience = plans[0].settings.number("broker.session.timeout.ms") / 1000
        self._reading, self._writing = os.pipe()  # nothing is written: it ends with the parent
        self._ending = False
        self._code = 0

    def run(self) -> int:
        """Returns the exit code: 0 if all workers ended well."""
        # Whoever started this program may have had it ignored: then nobody could be told how a worker ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with asked_to_end() as asked:
            try:
                before = time.monotonic()
                while self._take_step():
                    sentinels = [worker.process.sentinel for worker in self._workers if worker.process is not None]
                    wait(sentinels, _TICK)
                    now = time.monotonic()
                    # If the parent stood still, so did they.
                    kill_silent(self._workers, min(now - before, 2 * _TICK), self._patience)
                    before = now
                    if asked.is_set():
                        self._end(signal.SIGTERM)
            except KeyboardInterrupt:  # asked twice
                self._end(signal.SIGKILL)
                log.warning("told a second time to stop: the workers are killed, requests under way are cut off")
                return 1
            except BaseException:  # a bug of ours; the interpreter waits for the workers before it ends
                self._end(signal.SIGTERM)
                raise
        return self._code

    def _take_step(self) -> bool:
        """Note what has ended, and start what is due; False if all is over."""
        for worker in self._workers:
            if worker.process is not None and worker.process.exitcode is not None:
                self._note_end(worker)
        now = time.monotonic()
        for worker in self._workers:
            if worker.process is None and not self._ending and worker.due <= now:
                worker.start(self._run_worker)
        return any(worker.process is not None for worker in self._workers) or not self._ending

    def _note_end(self, worker: Worker) -> None:
        code = worker.note_end()
        if self._ending:
            ended_well = code in (0, -signal.SIGTERM)  # the latter before it had begun
            self._code = self._code or (0 if ended_well else 1)
        elif code > 0 and self._is_starting(worker):  # it has said why, and would say it again
            self._code = 1
            self._end(signal.SIGTERM)
        else:
            pause = max(0.0, worker.due - time.monotonic())
            log.error("worker %d has ended (%s): it starts again in %.1f s", worker.number, _explain(code), pause)

    def _is_starting(self, worker: Worker) -> bool:
        """Whether it has just been started for the first time, or nobody serves yet."""
        first = worker.starts == 1 and not worker.has_served
        return first or not any(each.has_served for each in self._workers)

    def _end(self, with_signal: signal.Signals) -> None:
        """Send it to all, SIGTERM once."""
        if self._ending and with_signal is signal.SIGTERM:
            return
        self._ending = True
        for worker in self._workers:
            if worker.process is not None and worker.process.pid is not None and worker.process.is_alive():
                os.kill(worker.process.pid, with_signal)

    def _run_worker(self, worker: Worker) -> None:
        """In the worker's process."""
        os.setpgid(0, 0)  # Ctrl-C in a terminal is the parent's
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.close(self._writing)
        try:
            self._serve(worker, Companion(worker.life, self._reading))
        except click.ClickException as error:
            log.error("%s", error.format_message())
            sys.exit(1)


class Companion:
    """In a worker, beside the broker: signs of life for the parent, and an end when the parent asks or is gone."""

    def __init__(self, life: Life, parent: int) -> None:
        """`parent`: a descriptor that can be read to its end as soon as the parent is gone."""
        self.life = life
        self._parent = parent

    def begin(self) -> asyncio.Event:
        """On the worker's loop, before anything else. The event is set when the worker is to end.

        A second signal changes nothing: systemd sends one beside the parent's, and it is the parent that is told twice.
        """
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in _SIGNALS:
            loop.add_signal_handler(number, stop.set)
        loop.add_reader(self._parent, self._note_parent_gone, stop)
        self._beat(loop)
        return stop

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self.life.beat()
        loop.call_later(_TICK, self._beat, loop)

    def _note_parent_gone(self, stop: asyncio.Event) -> None:
        asyncio.get_running_loop().remove_reader(self._parent)
        log.error("the parent of the workers is gone: this worker ends")
        stop.set()


def _start(process: multiprocessing.process.BaseProcess) -> None:
    """Raises `OSError`, and leaves nothing open then: multiprocessing would leave its pipes."""
    with Path(os.devnull).open("rb") as spare:  # to list the descriptors, another one is needed
        before = _list_descriptors()
        try:
            process.start()
        except OSError:
            spare.close()
            for each in _list_descriptors() - before:  # of this thread, the only one
                os.close(each)
            raise


def _list_descriptors() -> set[int]:
    return {int(each.name) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()}  # not the listing's own


def _explain(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    names = {each.value: each.name for each in signal.Signals}  # most real-time signals have none
    return names.get(-code, f"signal {-code}")
