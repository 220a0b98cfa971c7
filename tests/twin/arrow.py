"""Arrow arrays as lists, which can be compared with the reference's rows."""

from typing import Any

import pyarrow as pa

import korvet_fast._native as native


def rows(page: Any) -> list[tuple[Any, ...]]:
    """The rows of either implementation's columns, with times in µs."""
    if not isinstance(page, native.ArrowColumns):
        return list(page)
    batch = pa.record_batch(page)
    batch.validate(full=True)
    columns = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in batch.columns]
    cells = [column.to_pylist() for column in columns]
    for place, name in enumerate(batch.schema.names):
        if name == "headers":
            cells[place] = [found and [(pair["key"], pair["value"]) for pair in found] for found in cells[place]]
    return list(zip(*cells, strict=True)) if cells else [()] * len(batch)
