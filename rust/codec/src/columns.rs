//! Batches to columns and back, in Arrow's layout: variable-length cells are one run of bytes and the n + 1 offsets into
//! it, and nulls are zeros in a run of n bytes.

mod build;
mod rows;

pub use build::build_batch;
pub use rows::{RECORD_MOST, RowRun, build_rows, group_rows};

use crate::batch::{Record, Records, payload, whole};
use crate::compression::Compression;
use crate::{Code, Error, Result};

/// The records of some batches, column by column. All times in ms.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Columns {
    /// Offset of each record.
    pub offset: Vec<i64>,
    /// Time of each record: its own, or that of append.
    pub timestamp: Vec<i64>,
    /// Keys.
    pub key: Cells,
    /// Values.
    pub value: Cells,
    /// Where each record's headers begin among all of them; one more than there are records.
    pub header_offsets: Vec<i32>,
    /// Keys of all headers; never null.
    pub header_key: Cells,
    /// Values of all headers.
    pub header_value: Cells,
}

/// A column of byte strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells {
    /// Where each cell begins in `data`, and where the last one ends.
    pub offsets: Vec<i32>,
    /// The cells' bytes without gaps.
    pub data: Vec<u8>,
    /// 1 for a value, 0 for null.
    pub valid: Vec<u8>,
}

impl Default for Cells {
    fn default() -> Self {
        Self { offsets: vec![0], data: Vec::new(), valid: Vec::new() }
    }
}

impl Cells {
    fn push(&mut self, cell: Option<&[u8]>) -> Result<()> {
        self.data.extend_from_slice(cell.unwrap_or_default());
        self.offsets.push(column_offset(self.data.len())?);
        self.valid.push(u8::from(cell.is_some()));
        Ok(())
    }

    fn reserve(&mut self, cells: usize) {
        self.offsets.reserve(cells);
        self.valid.reserve(cells);
    }
}

impl Columns {
    fn reserve(&mut self, records: usize) {
        self.offset.reserve(records);
        self.timestamp.reserve(records);
        self.key.reserve(records);
        self.value.reserve(records);
        self.header_offsets.reserve(records);
    }

    fn push(&mut self, offset: i64, timestamp: i64, record: &Record) -> Result<()> {
        self.offset.push(offset);
        self.timestamp.push(timestamp);
        self.key.push(record.key)?;
        self.value.push(record.value)?;
        for (key, value) in record.headers.clone() {
            self.header_key.push(Some(key))?;
            self.header_value.push(value)?;
        }
        self.header_offsets.push(column_offset(self.header_key.valid.len())?);
        Ok(())
    }
}

fn column_offset(at: usize) -> Result<i32> {
    i32::try_from(at).map_err(|_| Error::new(Code::Oversize, "a column cannot be larger than 2 GiB"))
}

/// Version 2 batches, all of the data, as columns. Control batches are skipped, checksums are not looked at.
///
/// `limit` bounds the decompressed bytes of all batches together. Errors as
/// [`Header::parse`](crate::batch::Header::parse), of decompression, `BAD_COUNT`, `BAD_RECORD`, `BAD_OFFSET`, and
/// `OVERSIZE` for a column beyond 2 GiB.
pub fn to_columns(batches: &[u8], mut limit: usize) -> Result<Columns> {
    let mut columns = Columns { header_offsets: vec![0], ..Columns::default() };
    for found in whole(batches) {
        let (batch, bytes) = found?;
        let header = &batch.header;
        if header.control() {
            continue;
        }
        let payload = payload(header, bytes, limit)?;
        if header.compression() != Compression::None.bits() {
            limit -= payload.len();
        }
        let records = Records::new(header, &payload)?;
        columns.reserve(records.most());
        for record in records {
            let record = record?;
            columns.push(record.offset(header)?, record.timestamp(header)?, &record)?;
        }
    }
    Ok(columns)
}

#[cfg(test)]
mod tests;
