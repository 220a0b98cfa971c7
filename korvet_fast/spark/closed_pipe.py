"""How a task ends whose rows nobody wants any more: quietly.

`show()` and `take()` need a few rows, and Spark then closes the worker's socket. Python ignores SIGPIPE, so a write
there is an error, and the worker prints a traceback about a result that is right.
"""

import os
import signal
import threading
from types import FrameType

from pyspark import TaskContext


def exit_when_spark_closes() -> None:
    """In a worker of Spark: end the process when it writes to its closed socket, in this task and in no later one.

    That is also after the reader's end: Spark closes the reader when a write failed, says what failed in a buffer, and
    only then finds that the socket takes no more. A worker that Spark uses again has another task by then.
    """
    context = TaskContext.get()
    if context is None or threading.current_thread() is not threading.main_thread():
        return
    task = context.taskAttemptId()

    def leave(number: int, frame: FrameType | None) -> None:
        now = TaskContext.get()  # none: Spark takes it away before the last of a task's writes
        if now is None or now.taskAttemptId() == task:
            os._exit(0)  # nothing is left to clean up

    signal.signal(signal.SIGPIPE, leave)


def keep_sigpipe_away() -> None:
    """In the thread that talks to brokers: a connection that a broker closed is an error, and is tried again."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
