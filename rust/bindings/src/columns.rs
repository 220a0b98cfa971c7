//! Batches to columns and back.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use korvet_codec::batch::Origin;
use korvet_codec::columns::{Cells, Columns};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyMapping};

use crate::batch::{read_kind, run, unpack};
use crate::buffer::{Column, Input};
use crate::error::OrRaise;
use crate::hint::Named;

/// The records of version 2 batches as columns in Arrow's layout: n records, h headers in all, times in ms. All of the
/// data must be batches.
///
/// `offset` q[n], `timestamp` q[n], `key_offsets` i[n+1], `key` B[], `key_valid` B[n] (0 or 1 each), `value_offsets`,
/// `value`, `value_valid` likewise, `header_offsets` i[n+1] (record to headers), `header_key_offsets` i[h+1],
/// `header_key` B[], `header_value_offsets` i[h+1], `header_value` B[], `header_value_valid` B[h].
/// `limit` bounds the decompressed bytes of all batches together. Control batches are skipped, checksums not looked at.
/// Raises `TRUNCATED`, `BAD_MAGIC`, `BAD_LENGTH`, `BAD_OFFSET`, `BAD_COUNT`, `BAD_RECORD`, `UNKNOWN_COMPRESSION`,
/// `CORRUPT_COMPRESSION`, `DECOMPRESSION_LIMIT`, and `OVERSIZE` for a column beyond 2 GiB.
#[pyfunction]
pub(crate) fn to_columns(py: Python<'_>, batches: Input, limit: usize) -> PyResult<Named<Bound<'_, PyDict>>> {
    let data = batches.as_slice();
    let columns =
        unpack(py, data.len(), limit, |limit| korvet_codec::columns::to_columns(data, limit)).or_raise(py)?;
    let Columns { offset, timestamp, key, value, header_offsets, header_key, header_value } = columns;
    let out = PyDict::new(py);
    out.set_item("offset", Column::from(offset))?;
    out.set_item("timestamp", Column::from(timestamp))?;
    put(&out, "key", key, true)?;
    put(&out, "value", value, true)?;
    out.set_item("header_offsets", Column::from(header_offsets))?;
    put(&out, "header_key", header_key, false)?;
    put(&out, "header_value", header_value, true)?;
    Ok(Named(out))
}

fn put(out: &Bound<'_, PyDict>, name: &str, cells: Cells, nullable: bool) -> PyResult<()> {
    out.set_item(format!("{name}_offsets"), Column::from(cells.offsets))?;
    out.set_item(name, Column::from(cells.data))?;
    if nullable {
        out.set_item(format!("{name}_valid"), Column::from(cells.valid))?;
    }
    Ok(())
}

/// Build one version 2 batch from columns as `to_columns` gives them. The checksum is set, the leader epoch is -1.
///
/// `offset` may be left out (then offsets are dense from `base_offset`), the three of `key` (all null) and the six of
/// the headers. -1 for producer id, epoch and sequence if there is no idempotent producer. `compression`: 16 more say that
/// the batch is part of a transaction. Raises `BAD_COLUMNS` for
/// names missing or unknown and for columns that disagree, `BAD_OFFSET` for offsets that do not rise, or leave the 31
/// bits above `base_offset`, `BAD_COUNT` for no records, `OUT_OF_RANGE` for times too far apart, `UNKNOWN_COMPRESSION`,
/// and `OVERSIZE` beyond 2 GiB.
#[pyfunction]
pub(crate) fn build_batch<'py>(
    py: Python<'py>,
    columns: Named<Bound<'py, PyMapping>>,
    compression: u8,
    base_offset: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
) -> PyResult<Bound<'py, PyByteArray>> {
    let (compression, transactional) = read_kind(compression).or_raise(py)?;
    let held: Vec<(String, Input)> =
        columns.0.items()?.iter().map(|item| item.extract()).collect::<PyResult<_>>()?;
    let named: Vec<(&str, &[u8])> =
        held.iter().map(|(name, data)| (name.as_str(), data.as_slice())).collect();
    let size = named.iter().map(|(_, data)| data.len()).sum();
    let origin = Origin { producer_id, producer_epoch, base_sequence, transactional };
    let batch =
        run(py, size, || korvet_codec::columns::build_batch(&named, compression, base_offset, origin));
    Ok(PyByteArray::new(py, &batch.or_raise(py)?))
}
