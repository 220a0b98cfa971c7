//! Message sets older than version 2: up-converted, and down-converted to.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::batch::unpack;
use crate::buffer::Input;
use crate::error::OrRaise;

/// Up-convert a message set of magic 0 and 1 to one version 2 batch: not compressed, base offset 0, offsets dense.
///
/// Times in ms: a message's own, or its wrapper's if that was stamped on append; magic 0 gets `now`. `limit` bounds the
/// decompressed bytes of all wrappers together. All of the data must be messages. Raises, in this order for each
/// message: `TRUNCATED`, `BAD_LENGTH`, `TRUNCATED`, `BAD_MAGIC`, `BAD_LENGTH`, `BAD_CRC`, `UNKNOWN_COMPRESSION` (zstd
/// too), `BAD_RECORD`; for a wrapper `CORRUPT_COMPRESSION`, `DECOMPRESSION_LIMIT`, `BAD_COUNT` (nothing inside), and for
/// each message inside also `NESTED_COMPRESSION`, `BAD_MAGIC` (not the wrapper's); `OUT_OF_RANGE` for times too far
/// apart; `BAD_COUNT` for no messages at all.
#[pyfunction]
pub(crate) fn up_convert(
    py: Python<'_>,
    messages: Input,
    limit: usize,
    now: i64,
) -> PyResult<Bound<'_, PyByteArray>> {
    let data = messages.as_slice();
    let batch = unpack(py, data.len(), limit, |limit| korvet_codec::legacy::up_convert(data, limit, now))
        .or_raise(py)?;
    Ok(PyByteArray::new(py, &batch))
}

/// Down-convert version 2 batches, all of the data, to an uncompressed message set of magic 0 or 1. Offsets are kept.
///
/// Headers are lost, and in magic 0 times; control batches are skipped. `limit` bounds the decompressed bytes of all
/// batches together. Raises `BAD_VALUE` for another magic, and as `to_columns`.
#[pyfunction]
pub(crate) fn down_convert(
    py: Python<'_>,
    batches: Input,
    magic: u8,
    limit: usize,
) -> PyResult<Bound<'_, PyByteArray>> {
    let data = batches.as_slice();
    let messages =
        unpack(py, data.len(), limit, |limit| korvet_codec::legacy::down_convert(data, magic, limit))
            .or_raise(py)?;
    Ok(PyByteArray::new(py, &messages))
}
