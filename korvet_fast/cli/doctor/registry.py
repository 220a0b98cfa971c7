"""Checks the registry of a store on files: whether it is there, and whether a start would read it."""

from collections.abc import Iterator
from pathlib import Path

from korvet_fast._native import batch_headers
from korvet_fast.cli.doctor.finding import Finding, bad
from korvet_fast.store.embedded.index import read_summary
from korvet_fast.store.embedded.recovery import CHECKPOINT, find_written
from korvet_fast.store.embedded.registry import NAME
from korvet_fast.store.embedded.segment import covered_size


def examine_registry(directory: Path) -> Iterator[Finding]:
    """The findings where no broker uses the store. What a crash has torn is none: the next start cuts it off."""
    registry = directory / NAME
    segments = sorted(registry.glob("*.log"))
    if not any(segment.stat().st_size for segment in segments):
        if written := find_written(directory):
            yield bad(
                "registry",
                f"{registry}, which says what topics, groups and settings there are, is missing or empty, and logs "
                f"hold records ({len(written)}, the first {written[0]}). Copy it back before a broker starts.",
            )
        return
    for segment in segments:
        page = segment.read_bytes()
        whole = covered_size(batch_headers(page, verify=True))
        if whole < len(page) and _was_closed(segment, len(page)):
            yield bad("registry", f"{segment} is damaged at byte {whole}, and no broker starts. Copy {registry} back.")


def _was_closed(segment: Path, size: int) -> bool:
    """Whether a start takes these bytes for whole, as a clean stop left so many of them."""
    summary = read_summary(segment.with_suffix(".index"))
    return (summary is not None and summary.size == size) or (segment.parents[1] / CHECKPOINT).exists()
