"""A pool of threads that all begin at once (a leaf: importable by all floors).

`ThreadPoolExecutor` starts its threads when there is work for them. Where the system starts none then (`ulimit -u`, a
cgroup's pids.max), `submit` raises an error although it has queued the work: the work is done later, or never.
Here the pool is not made then, and a pool that was made needs no other thread. And a thread that begins while memory is
full would lie among the objects of requests, for good.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from korvet_fast.errors import TooFewThreads


class PrestartedExecutor(ThreadPoolExecutor):
    """A `ThreadPoolExecutor` whose threads have all begun."""

    def __init__(self, threads: int, name: str) -> None:
        """Raises `TooFewThreads` if the system does not start so many; those that have begun are ended then."""
        super().__init__(threads, name)
        ready = Barrier(threads + 1)
        try:
            for _ in range(threads):
                self.submit(ready.wait)
        except RuntimeError as error:  # what `Thread.start` raises
            ready.abort()
            super().shutdown()  # not a subclass's: it is not made
            if "shutdown" in str(error):  # the program is ending, and no limit is in its way
                raise
            raise TooFewThreads from error
        ready.wait()
