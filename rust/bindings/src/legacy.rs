//! Message sets older than version 2, lifted and lowered.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::batch::run;
use crate::buffer::Input;
use crate::error::OrRaise;

/// A message set of magic 0 and 1 as one version 2 batch: not compressed, base offset 0, offsets dense.
///
/// Times in ms: a message's own, or its wrapper's if that was stamped on append; magic 0 gets `now`. `limit` bounds the
/// decompressed bytes of all wrappers together. All of the data must be messages. Raises, in this order for each
/// message: `TRUNCATED`, `BAD_LENGTH`, `TRUNCATED`, `BAD_MAGIC`, `BAD_LENGTH`, `BAD_CRC`, `UNKNOWN_COMPRESSION` (zstd
/// too), `BAD_RECORD`; for a wrapper `CORRUPT_COMPRESSION`, `DECOMPRESSION_LIMIT`, `BAD_COUNT` (nothing inside), and for
/// each message inside also `NESTED_COMPRESSION`, `BAD_MAGIC` (not the wrapper's); `OUT_OF_RANGE` for times too far
/// apart; `BAD_COUNT` for no messages at all.
#[pyfunction]
pub(crate) fn lift(
    py: Python<'_>,
    messages: Input,
    limit: usize,
    now: i64,
) -> PyResult<Bound<'_, PyByteArray>> {
    let data = messages.as_slice();
    let batch = run(py, data.len(), || korvet_codec::legacy::lift(data, limit, now)).or_raise(py)?;
    Ok(PyByteArray::new(py, &batch))
}

/// Version 2 batches, all of the data, as an uncompressed message set of magic 0 or 1, offsets kept.
///
/// Headers are lost, and in magic 0 times; control batches are skipped. `limit` bounds the decompressed bytes of all
/// batches together. Raises `BAD_VALUE` for another magic, and as `columns`.
#[pyfunction]
pub(crate) fn lower(
    py: Python<'_>,
    batches: Input,
    magic: u8,
    limit: usize,
) -> PyResult<Bound<'_, PyByteArray>> {
    let data = batches.as_slice();
    let messages = run(py, data.len(), || korvet_codec::legacy::lower(data, magic, limit)).or_raise(py)?;
    Ok(PyByteArray::new(py, &messages))
}
