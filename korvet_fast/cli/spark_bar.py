"""Bars for what takes long in Spark: its start, and its jobs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK = 0.2  # seconds between two looks at a job


class JobProgress(NamedTuple):
    """Of the stages that run: tasks that are done and all tasks, and the rows that tasks read so far."""

    done: int
    tasks: int
    rows: int


@contextmanager
def waiting_bar(what: str) -> Iterator[None]:
    """Draw a bar that moves while the block runs, on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        bar.add_task(what, total=None)
        yield


@contextmanager
def job_bar(spark: "SparkSession", what: str) -> Iterator[None]:
    """Draw how far the block's Spark job is: a bar of tasks, and the rows read, which move before a task ends.

    The bar has a thread of its own, and the job stays on the caller's: on another thread Spark finds no session and no
    data source.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"))
    ended = threading.Event()
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task(what, total=None, state="")

        def draw() -> None:
            while not ended.wait(LOOK):
                found = count_tasks(spark)
                if found.tasks:
                    state = f"{found.done}/{found.tasks} tasks, {found.rows:,} rows"
                    # Without a total the bar runs to and fro: it would stand still at 0 until the first task ends.
                    bar.update(task, completed=found.done, total=found.tasks if found.done else None, state=state)

        drawing = threading.Thread(target=draw)
        drawing.start()
        try:
            yield
        finally:
            ended.set()
            drawing.join()


def count_tasks(spark: "SparkSession") -> JobProgress:
    """The progress of the stages that run now; of rows, as the last heartbeats of their tasks told."""
    found = spark.sparkContext._jsc.sc().statusStore().activeStages()
    stages = [found.apply(number) for number in range(found.length())]
    return JobProgress(
        sum(stage.numCompleteTasks() for stage in stages),
        sum(stage.numTasks() for stage in stages),
        sum(stage.inputRecords() or stage.shuffleReadRecords() for stage in stages),
    )
