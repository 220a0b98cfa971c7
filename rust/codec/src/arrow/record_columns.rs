//! Records as the columns of Spark's Kafka row.

use super::aborted::Aborted;
use super::column::{Cells, Column, Headers};
use crate::batch::{Header, Records, payload, verify, whole};
use crate::{Code, Error, Result};

/// Columns that are larger take no further batch, so that no column gets beyond the 31 bits of an offset.
const MOST_BYTES: usize = 1 << 30;
const US_PER_MS: i64 = 1000;

/// A column of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Binary.
    Key,
    /// Binary.
    Value,
    /// Text.
    Topic,
    /// A 32-bit number.
    Partition,
    /// A 64-bit number.
    Offset,
    /// Time in µs: the record's own, or that of append.
    Timestamp,
    /// 0 for a time of creation, 1 for a time of append.
    TimestampType,
    /// Lists of key and value.
    Headers,
}

impl Name {
    const ALL: [(&str, Self); 8] = [
        ("key", Self::Key),
        ("value", Self::Value),
        ("topic", Self::Topic),
        ("partition", Self::Partition),
        ("offset", Self::Offset),
        ("timestamp", Self::Timestamp),
        ("timestampType", Self::TimestampType),
        ("headers", Self::Headers),
    ];

    /// These columns. `BAD_COLUMNS` for a name that is unknown or given twice.
    pub fn parse<T: AsRef<str>>(names: &[T]) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        for name in names.iter().map(AsRef::as_ref) {
            match Self::ALL.iter().find(|(known, _)| *known == name) {
                None => return Error::fail(Code::BadColumns, format!("there is no column {name:?}")),
                Some((_, again)) if found.contains(again) => {
                    return Error::fail(Code::BadColumns, format!("the column {name} is wanted twice"));
                }
                Some((_, new)) => found.push(*new),
            }
        }
        Ok(found)
    }

    /// As it is written.
    #[must_use]
    pub fn text(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// The records and columns wanted of the data of a Fetch answer.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Where the data is from.
    pub topic: &'a str,
    /// Where the data is from.
    pub partition: i32,
    /// These columns in this order.
    pub columns: &'a [Name],
    /// Records from this offset on.
    pub start: i64,
    /// Records below this offset.
    pub end: i64,
    /// No further batch after this many rows.
    pub max_rows: usize,
    /// No further batch after this many bytes of Arrow buffers.
    pub max_bytes: usize,
    /// Most decompressed bytes of a batch.
    pub limit: usize,
    /// Transactions to be left out, as (producer id, first offset).
    pub aborted: &'a [(i64, i64)],
}

/// Records as columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordColumns {
    /// How many records.
    pub rows: usize,
    /// The columns that were wanted.
    pub columns: Vec<(Name, Column)>,
    /// Bytes of all buffers.
    pub size: usize,
    /// Where reading goes on.
    pub next: i64,
    /// False: there are further whole batches in the data.
    pub whole: bool,
}

impl Wanted<'_> {
    /// The records of version 2 batches, one behind the other; the last one may be cut off anywhere, and is left then.
    ///
    /// Batches that end below `start` are not decompressed, control batches and those of aborted transactions are left
    /// out. One batch is taken at least. Errors, behind the batch's offset: `BAD_CRC`, of decompression, `BAD_COUNT`,
    /// `BAD_RECORD`, `BAD_OFFSET`, `OUT_OF_RANGE` for a time beyond 64 bits of µs, `OVERSIZE` for a column beyond 2 GiB;
    /// and as [`Header::parse`], but for `TRUNCATED`.
    pub fn read(&self, batches: &[u8]) -> Result<RecordColumns> {
        let mut rows = ColumnsBuilder::new(self.columns, batches.len().min(self.max_bytes).min(MOST_BYTES));
        let mut aborted = Aborted::new(self.aborted);
        let (mut next, mut taken) = (self.start, false);
        for found in whole(batches) {
            let (batch, bytes) = match found {
                Err(error) if error.code == Code::Truncated => break,
                found => found?,
            };
            let header = &batch.header;
            if next >= self.end || header.base_offset >= self.end {
                next = next.max(self.end);
                break;
            }
            let within = |error: Error| error.within(&format!("the batch at offset {}", header.base_offset));
            let left_out = aborted.has(header, bytes, self.limit).map_err(within)? || header.control();
            if header.last_offset() < next {
                continue;
            }
            if !left_out {
                if taken && (rows.count >= self.max_rows || self.full(&rows)) {
                    return rows.finish(self, next, false);
                }
                rows.take(header, bytes, next..self.end, self.limit).map_err(within)?;
                taken = true;
            }
            next = header.last_offset().saturating_add(1).min(self.end);
        }
        rows.finish(self, next, true)
    }

    fn full(&self, rows: &ColumnsBuilder) -> bool {
        rows.size(self) >= self.max_bytes.min(MOST_BYTES)
    }

    fn wants(&self, name: Name) -> bool {
        self.columns.contains(&name)
    }
}

/// The columns that differ from row to row, those of them that are wanted.
struct ColumnsBuilder {
    count: usize,
    key: Option<Cells>,
    value: Option<Cells>,
    offset: Option<Vec<i64>>,
    timestamp: Option<Vec<i64>>,
    timestamp_type: Option<Vec<i32>>,
    headers: Option<Headers>,
}

impl ColumnsBuilder {
    /// `room`: a guess at the bytes of all values. What is not needed of it is never touched.
    fn new(columns: &[Name], room: usize) -> Self {
        fn wanted<T: Default>(columns: &[Name], name: Name) -> Option<T> {
            columns.contains(&name).then(T::default)
        }
        Self {
            count: 0,
            key: wanted(columns, Name::Key),
            value: wanted(columns, Name::Value).map(|cells: Cells| cells.with_room(room)),
            offset: wanted(columns, Name::Offset),
            timestamp: wanted(columns, Name::Timestamp),
            timestamp_type: wanted(columns, Name::TimestampType),
            headers: wanted(columns, Name::Headers),
        }
    }

    /// Another batch's records, those inside `range`.
    fn take(
        &mut self,
        header: &Header,
        bytes: &[u8],
        range: std::ops::Range<i64>,
        limit: usize,
    ) -> Result<()> {
        verify(header, bytes)?;
        let payload = payload(header, bytes, limit)?;
        let records = Records::new(header, &payload)?;
        self.reserve(records.most());
        for record in records {
            let record = record?;
            let offset = record.offset(header)?;
            if !range.contains(&offset) {
                continue;
            }
            if let Some(key) = &mut self.key {
                key.push(record.key)?;
            }
            if let Some(value) = &mut self.value {
                value.push(record.value)?;
            }
            if let Some(offsets) = &mut self.offset {
                offsets.push(offset);
            }
            if let Some(timestamps) = &mut self.timestamp {
                timestamps.push(micros(record.timestamp(header)?)?);
            }
            if let Some(headers) = &mut self.headers {
                headers.push(record.headers)?;
            }
            self.count += 1;
        }
        if let Some(types) = &mut self.timestamp_type {
            types.resize(self.count, i32::from(header.log_append_time()));
        }
        Ok(())
    }

    fn reserve(&mut self, rows: usize) {
        self.key.iter_mut().chain(&mut self.value).for_each(|cells| cells.reserve(rows));
        self.offset.iter_mut().chain(&mut self.timestamp).for_each(|numbers| numbers.reserve(rows));
    }

    /// Bytes that all columns take.
    fn size(&self, wanted: &Wanted) -> usize {
        let cells: usize = self.key.iter().chain(&self.value).map(Cells::size).sum();
        let longs = self.offset.iter().chain(&self.timestamp).count();
        let ints = self.timestamp_type.iter().count() + usize::from(wanted.wants(Name::Partition));
        let topic = if wanted.wants(Name::Topic) { 4 + self.count * (4 + wanted.topic.len()) } else { 0 };
        cells + self.count * (8 * longs + 4 * ints) + topic + self.headers.as_ref().map_or(0, Headers::size)
    }

    fn finish(mut self, wanted: &Wanted, next: i64, whole: bool) -> Result<RecordColumns> {
        let size = self.size(wanted);
        let (rows, names) = (self.count, wanted.columns);
        let columns =
            names.iter().map(|name| Ok((*name, self.column(*name, wanted)?))).collect::<Result<_>>()?;
        Ok(RecordColumns { rows, columns, size, next, whole })
    }

    /// One column, which is not here any more then.
    fn column(&mut self, name: Name, wanted: &Wanted) -> Result<Column> {
        Ok(match name {
            Name::Key => Column::Binary(self.key.take().unwrap_or_default().finish()),
            Name::Value => Column::Binary(self.value.take().unwrap_or_default().finish()),
            Name::Topic => Column::Text(Cells::repeated(wanted.topic.as_bytes(), self.count)?),
            Name::Partition => Column::Ints(vec![wanted.partition; self.count]),
            Name::Offset => Column::Longs(self.offset.take().unwrap_or_default()),
            Name::Timestamp => Column::Times(self.timestamp.take().unwrap_or_default()),
            Name::TimestampType => Column::Ints(self.timestamp_type.take().unwrap_or_default()),
            Name::Headers => Column::Headers(self.headers.take().unwrap_or_default().finish()),
        })
    }
}

#[inline]
fn micros(ms: i64) -> Result<i64> {
    ms.checked_mul(US_PER_MS).ok_or_else(|| Error::new(Code::OutOfRange, "a time does not fit 64 bits of µs"))
}
