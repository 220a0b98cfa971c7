"""The picture of a soak: what clients waited, what the brokers took, and when which fault began."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.backends.backend_agg import FigureCanvasAgg  # draws without a screen
from matplotlib.figure import Figure

from soak.samples import Sample


class Happened(NamedTuple):
    """A fault. `at`: monotonic seconds."""

    at: float
    world: str
    name: str


Waits = dict[str, Sequence[tuple[float, float]]]  # by world: when a probe began, and the seconds it took


def draw(
    file: Path, title: str, begin: float, waits: Waits, samples: Sequence[Sample], faults: Sequence[Happened]
) -> None:
    """A column for each world; the format follows the file's ending. `begin`: the monotonic time that is 0."""
    figure = Figure(figsize=(7 * len(waits), 9), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    grid = figure.subplots(3, len(waits), sharex=True, squeeze=False)
    for column, (world, probes) in enumerate(waits.items()):
        latency, memory, descriptors = (row[column] for row in grid)
        latency.set_title(f"{world}: a record acknowledged, ms; faults are lines")
        latency.plot([at - begin for at, _ in probes], [1000 * wait for _, wait in probes], ".", markersize=3)
        latency.set_yscale("log")
        for fault in faults:
            if fault.world == world:
                latency.axvline(fault.at - begin, linewidth=0.5, color="tab:red")
        memory.set_title("resident memory of each broker, MiB")
        descriptors.set_title("descriptors of each broker")
        for broker in sorted({sample.broker for sample in samples if sample.broker.startswith(f"{world} ")}):
            rows = [sample for sample in samples if sample.broker == broker]
            times = [sample.at - begin for sample in rows]
            memory.plot(times, [sample.memory for sample in rows], label=broker)
            descriptors.plot(times, [sample.descriptors for sample in rows], label=broker)
        for axes in (memory, descriptors):
            axes.set_ylim(bottom=0)
            if axes.lines:
                axes.legend(loc="lower right")
        descriptors.set_xlabel("seconds")
    figure.savefig(file)
