//! Batches to Arrow and back, through its C data interface. The structs of that interface are read and written here and
//! nowhere else, which takes `unsafe`: `abi.rs` (releasing), `export.rs` (lending), `import.rs` (borrowing).
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

mod abi;
mod export;
pub(crate) mod import;
mod rows;

pub(crate) use rows::ArrowRecords;

use std::sync::Arc;

use korvet_codec::arrow::{Name, RecordColumns, Wanted};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::batch::unpack;
use crate::buffer::Input;
use crate::error::OrRaise;
use crate::hint::Capsule;

/// Records as one Arrow struct array, one field for each column. `pyarrow.record_batch(columns)` takes it without a
/// copy; the memory is freed when neither the columns nor anything made of them is used any more.
#[pyclass(frozen, module = "korvet_fast._native")]
pub(crate) struct ArrowColumns(Arc<RecordColumns>);

#[pymethods]
impl ArrowColumns {
    /// Rows.
    fn __len__(&self) -> usize {
        self.0.rows
    }

    /// The offset where reading goes on: behind the last batch that was used or skipped, at most `end`.
    #[getter]
    fn next(&self) -> i64 {
        self.0.next
    }

    /// Bytes of all Arrow buffers.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.size
    }

    /// False: there is another whole batch in the data; call again on the same data with `start` = `next`.
    #[getter]
    fn whole(&self) -> bool {
        self.0.whole
    }

    /// The capsules (`arrow_schema`, `arrow_array`) of Arrow's `PyCapsule` interface; no other schema can be had.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Capsule<'py>, Capsule<'py>)> {
        // The interface allows to ignore it, and the caller to find out by looking.
        drop(requested_schema);
        let schema = PyCapsule::new_with_value(py, export::schema(&self.0), abi::SCHEMA)?;
        let array = PyCapsule::new_with_value(py, export::array(&self.0), abi::ARRAY)?;
        Ok((Capsule(schema), Capsule(array)))
    }
}

/// The records `start` <= offset < `end` in the version 2 batches of a Fetch answer, as Arrow columns.
///
/// `columns`: which and in this order, out of key binary, value binary, topic string, partition int32, offset int64,
/// timestamp timestamp[us, tz=UTC], timestampType int32 (0 time of creation, 1 of append), headers list<element:
/// struct<key: string, value: binary>> (null for a record without any; header keys that are not UTF-8 are mended). All are
/// nullable.
///
/// The checksum of each batch that is used is verified. Batches wholly below `start` are skipped without decompression,
/// control batches too, and a last batch that is cut off is left. No further batch is taken after `max_rows` rows or
/// `max_bytes` bytes of Arrow; one is at least. `limit` bounds the decompressed bytes of one batch. `aborted`: (producer
/// id, first offset) as an answer with isolation level `read_committed` has them; the batches of those transactions are
/// left out.
///
/// Raises `BAD_COLUMNS` (a name unknown or given twice), `BAD_MAGIC`, `BAD_LENGTH`, `BAD_OFFSET`, and, naming the batch's
/// base offset, `BAD_CRC`, `UNKNOWN_COMPRESSION`, `CORRUPT_COMPRESSION`, `DECOMPRESSION_LIMIT`, `BAD_COUNT`, `BAD_RECORD`,
/// `BAD_OFFSET`, `OUT_OF_RANGE` (a time beyond 64 bits of µs), `OVERSIZE` (a column beyond 2 GiB).
#[pyfunction]
#[pyo3(signature = (batches, topic, partition, columns, start, end, max_rows, max_bytes, limit, aborted = vec![]))]
#[expect(clippy::too_many_arguments, reason = "one call takes everything that a fetch knows")]
pub(crate) fn to_arrow(
    py: Python<'_>,
    batches: Input,
    topic: &str,
    partition: i32,
    columns: Vec<String>,
    start: i64,
    end: i64,
    max_rows: usize,
    max_bytes: usize,
    limit: usize,
    aborted: Vec<(i64, i64)>,
) -> PyResult<ArrowColumns> {
    let columns = &Name::parse(&columns).or_raise(py)?;
    let aborted = &aborted;
    let wanted = Wanted { topic, partition, columns, start, end, max_rows, max_bytes, limit, aborted };
    let data = batches.as_slice();
    let records =
        unpack(py, data.len(), limit, |limit| Wanted { limit, ..wanted }.read(data)).or_raise(py)?;
    Ok(ArrowColumns(Arc::new(records)))
}
