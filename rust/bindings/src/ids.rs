//! Offsets and stream ids, whole columns at a time.

use korvet_codec::ids::Long;
use pyo3::prelude::*;

use crate::buffer::{Column, DETACH_ABOVE, Input};
use crate::error::OrRaise;

/// int64 offsets[n] -> int64[2n]: ms and sequence of the stream id of each, in turn.
///
/// An id is `ms-sequence`; an offset is `(ms << bits) | sequence`. `OUT_OF_RANGE` for a negative offset or more than
/// 62 bits; `BAD_VALUE` for a buffer of another format.
#[pyfunction]
pub(crate) fn pack_ids(py: Python<'_>, offsets: Input, bits: u32) -> PyResult<Column> {
    convert(py, &offsets, |numbers| korvet_codec::ids::pack(numbers, bits))
}

/// int64[2n] (ms, sequence in turn) -> int64 offsets[n].
///
/// `OUT_OF_RANGE` for sequence >= 2^bits, ms >= 2^(63-bits), negatives, or more than 62 bits; `BAD_LENGTH` for half an
/// id; `BAD_VALUE` for a buffer of another format.
#[pyfunction]
pub(crate) fn unpack_ids(py: Python<'_>, ids: Input, bits: u32) -> PyResult<Column> {
    convert(py, &ids, |numbers| korvet_codec::ids::unpack(numbers, bits))
}

fn convert(
    py: Python<'_>,
    input: &Input,
    work: impl Fn(&[Long]) -> korvet_codec::Result<Vec<i64>> + Send + Sync,
) -> PyResult<Column> {
    let numbers = input.as_longs(py)?;
    let result =
        if size_of_val(numbers) > DETACH_ABOVE { py.detach(|| work(numbers)) } else { work(numbers) };
    result.or_raise(py).map(Column::from)
}
