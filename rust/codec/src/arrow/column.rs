//! Columns of records, which are Arrow buffers from their first byte on.

use std::borrow::Cow;

use crate::batch;
use crate::{Code, Error, Result};

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// Byte strings, some of them null.
    Binary(Cells),
    /// Text in UTF-8.
    Text(Cells),
    /// 32-bit numbers.
    Ints(Vec<i32>),
    /// 64-bit numbers.
    Longs(Vec<i64>),
    /// Times in µs since 1970, in UTC.
    Times(Vec<i64>),
    /// A list of key and value for each row.
    Headers(Headers),
}

/// Byte strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells {
    /// Where each cell begins in `data`, and where the last one ends.
    pub offsets: Vec<i32>,
    /// The cells' bytes without gaps.
    pub data: Vec<u8>,
    /// The cells that are null.
    pub nulls: Nulls,
}

/// The headers of records; null for a record that has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// Where each record's headers begin among all of them, and where the last one's end.
    pub offsets: Vec<i32>,
    /// The records that have no headers.
    pub nulls: Nulls,
    /// Keys of all headers, as text; never null.
    pub keys: Cells,
    /// Values of all headers.
    pub values: Cells,
}

/// The cells that are null. Costs nothing while none is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Nulls {
    /// A bit for each cell, lowest first, 0 for null; until it is finished only up to the last null.
    bits: Vec<u8>,
    count: usize,
}

impl Nulls {
    /// How many cells are null.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Arrow's validity bitmap; None if no cell is null.
    #[must_use]
    pub fn bitmap(&self) -> Option<&[u8]> {
        (self.count != 0).then_some(&self.bits[..])
    }

    #[inline]
    fn mark(&mut self, at: usize) {
        if self.bits.len() <= at / 8 {
            self.bits.resize(at / 8 + 1, 0xff);
        }
        self.bits[at / 8] &= !(1 << (at % 8));
        self.count += 1;
    }

    fn finish(&mut self, cells: usize) {
        self.bits.resize(self.size(cells), 0xff);
    }

    fn size(&self, cells: usize) -> usize {
        if self.count == 0 { 0 } else { cells.div_ceil(8) }
    }
}

impl Default for Cells {
    fn default() -> Self {
        Self { offsets: vec![0], data: Vec::new(), nulls: Nulls::default() }
    }
}

impl Cells {
    /// `times` the same cell. `OVERSIZE`.
    pub(super) fn repeated(cell: &[u8], times: usize) -> Result<Self> {
        end(cell.len().saturating_mul(times))?;
        let offsets = (0..=times).map(|place| (place * cell.len()) as i32).collect();
        Ok(Self { offsets, data: cell.repeat(times), nulls: Nulls::default() })
    }

    #[inline]
    pub(super) fn push(&mut self, cell: Option<&[u8]>) -> Result<()> {
        match cell {
            Some(bytes) => self.data.extend_from_slice(bytes),
            None => self.nulls.mark(self.len()),
        }
        self.offsets.push(end(self.data.len())?);
        Ok(())
    }

    pub(super) fn with_room(mut self, bytes: usize) -> Self {
        self.data.reserve(bytes);
        self
    }

    pub(super) fn reserve(&mut self, cells: usize) {
        self.offsets.reserve(cells);
    }

    pub(super) fn finish(mut self) -> Self {
        self.nulls.finish(self.len());
        self
    }

    /// How many cells.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// There are no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all its buffers, when finished.
    pub(super) fn size(&self) -> usize {
        4 * self.offsets.len() + self.data.len() + self.nulls.size(self.len())
    }
}

impl Default for Headers {
    fn default() -> Self {
        Self { offsets: vec![0], nulls: Nulls::default(), keys: Cells::default(), values: Cells::default() }
    }
}

impl Headers {
    /// The headers of one more record. Keys that are not UTF-8 have their bad bytes replaced, as Java's strings do.
    pub(super) fn push(&mut self, headers: batch::Headers) -> Result<()> {
        if headers.left() == 0 {
            self.nulls.mark(self.offsets.len() - 1);
        }
        for (key, value) in headers {
            match String::from_utf8_lossy(key) {
                Cow::Borrowed(_) => self.keys.push(Some(key))?,
                Cow::Owned(mended) => self.keys.push(Some(mended.as_bytes()))?,
            }
            self.values.push(value)?;
        }
        self.offsets.push(end(self.keys.len())?);
        Ok(())
    }

    pub(super) fn finish(self) -> Self {
        let Self { offsets, mut nulls, keys, values } = self;
        nulls.finish(offsets.len() - 1);
        Self { offsets, nulls, keys: keys.finish(), values: values.finish() }
    }

    pub(super) fn size(&self) -> usize {
        let lists = 4 * self.offsets.len() + self.nulls.size(self.offsets.len() - 1);
        lists + self.keys.size() + self.values.size()
    }
}

/// As an offset of Arrow's.
#[inline]
fn end(at: usize) -> Result<i32> {
    i32::try_from(at).map_err(|_| Error::new(Code::Oversize, "a column cannot be larger than 2 GiB"))
}
