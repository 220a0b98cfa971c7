"""The bar of a command that reads or writes files: bytes, speed, time left; nothing where there is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def byte_bar(total: int) -> Iterator[Callable[[str, int], None]]:
    """Draw how many of `total` bytes are done. The block calls the result with the present item, and bytes more."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal)
    with bar:
        task = bar.add_task("", total=total)

        def move(what: str, more: int) -> None:
            bar.update(task, description=what, advance=more)

        yield move
