//! Batches into Redis streams and back.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use korvet_codec::resp::words;
use korvet_codec::stream::{Append, Head};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::batch::run;
use crate::buffer::Input;
use crate::commands::Argument;
use crate::error::OrRaise;

/// One version 2 batch as Redis commands that append its records to a stream, `XADD key id field value …` for each.
///
/// The ids are those of the offsets `base`, `base` + 1 and so on (see `pack_ids`). Fields: `key` and `value` (absent:
/// null), `timestamp` (ms; of a batch with time of append that time), `header.NAME` for each header in order, and for one
/// whose value is null `null.header.NAME` with an empty value. `first`: words that stand in front of the first record's
/// id in place of `XADD key`, as of a script that does what must go before. `limit` bounds the decompressed bytes.
///
/// Raises `TRUNCATED`, `BAD_MAGIC`, `BAD_LENGTH`, `BAD_OFFSET`, `TRAILING_BYTES` if this is not exactly one batch;
/// `BAD_ATTRIBUTES` (a control batch), `BAD_COUNT` (no records), `OUT_OF_RANGE` (`base` below 1, as no id is 0-0; offsets
/// beyond 63 bits; more than 62 `bits`), the codes of decompression, and for each record `BAD_RECORD`, `BAD_OFFSET` (not
/// the next offset), `TOO_MANY_ELEMENTS` (more than 3,500 headers, too many arguments for a script).
#[pyfunction]
#[pyo3(signature = (key, batch, base, bits, limit, first = None))]
pub(crate) fn pack_append<'py>(
    py: Python<'py>,
    key: Argument<'py>,
    batch: Input,
    base: i64,
    bits: u32,
    limit: usize,
    first: Option<Vec<Argument<'py>>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let each = words(&[&b"XADD"[..], key.as_ref()]);
    let each = Head { words: 2, packed: &each };
    let packed = first.as_deref().map(words);
    let first = match (&first, &packed) {
        (Some(first), Some(packed)) => Head { words: first.len(), packed },
        _ => each,
    };
    let data = batch.as_slice();
    let append = run(py, data.len(), || Append::new(data, base, bits, limit, each, first)).or_raise(py)?;
    PyBytes::new_with(py, append.size(), |out| {
        run(py, out.len(), || append.write(out));
        Ok(())
    })
}
