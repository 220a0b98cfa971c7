//! Columns to one batch.

use crate::batch::{Builder, Origin};
use crate::compression::Compression;
use crate::{Code, Error, Result};

const OFFSET: &str = "offset";
const TIMESTAMP: &str = "timestamp";
const HEADER_OFFSETS: &str = "header_offsets";
/// Offsets, bytes and validity of a column of cells.
const KEY: [&str; 3] = ["key_offsets", "key", "key_valid"];
const VALUE: [&str; 3] = ["value_offsets", "value", "value_valid"];
const HEADER_KEY: [&str; 2] = ["header_key_offsets", "header_key"];
const HEADER_VALUE: [&str; 3] = ["header_value_offsets", "header_value", "header_value_valid"];

/// More than the lengths and differences of a common record take.
const RECORD_OVERHEAD: usize = 24;

/// One batch of the records in these named columns; numbers are in this machine's byte order.
///
/// The names are those of the fields that [`to_columns`](super::to_columns) gives, cells as `key_offsets`, `key`, `key_valid`
/// and so on; `header_key` has no validity. Needed are `timestamp` and the three of `value`; left out may be `offset`
/// (then offsets are dense), the three of `key` (all null) and the six of the headers. `BAD_COLUMNS` for names missing
/// or unknown and for columns that disagree; `BAD_OFFSET` for offsets that do not rise, or leave the 31 bits above
/// `base_offset`; `BAD_COUNT` for no records; `OUT_OF_RANGE` for times too far apart; `OVERSIZE` beyond 2 GiB.
pub fn build_batch(
    columns: &[(&str, &[u8])],
    compression: Compression,
    base_offset: i64,
    origin: Origin,
) -> Result<Vec<u8>> {
    let source = Source(columns);
    source.check_names()?;
    let timestamps = source.numbers::<8>(TIMESTAMP)?;
    let count = timestamps.len();
    let offsets = source.any(&[OFFSET]).then(|| source.numbers::<8>(OFFSET)).transpose()?;
    if offsets.is_some_and(|offsets| offsets.len() != count) {
        return bad("the columns offset and timestamp differ in length");
    }
    let key = source.any(&KEY).then(|| source.cells(&KEY, Some(count))).transpose()?;
    let value = source.cells(&VALUE, Some(count))?;
    let headers = source.headers(count)?;

    let mut builder = Builder::new(value.data.len() + count * RECORD_OVERHEAD);
    let mut of_record = Vec::new();
    let mut last = -1;
    for (place, timestamp) in timestamps.iter().enumerate() {
        let delta = match offsets {
            Some(offsets) => i64::from_ne_bytes(offsets[place]).checked_sub(base_offset),
            None => Some(place as i64),
        };
        let Some(delta) = delta.and_then(|delta| i32::try_from(delta).ok()).filter(|delta| *delta > last)
        else {
            return Error::fail(Code::BadOffset, "offsets do not rise within 31 bits above the base offset");
        };
        last = delta;
        if let Some(headers) = &headers {
            headers.collect(place, &mut of_record);
        }
        let key = key.as_ref().and_then(|key| key.get(place));
        builder.push(delta, i64::from_ne_bytes(*timestamp), key, value.get(place), &of_record)?;
    }
    builder.finish(compression, base_offset, -1, origin)
}

/// The columns as given.
struct Source<'a>(&'a [(&'a str, &'a [u8])]);

/// A column of byte strings; its offsets were checked, so that every cell is inside its data.
struct Cells<'a> {
    offsets: &'a [[u8; 4]],
    data: &'a [u8],
    /// None: no cell is null.
    valid: Option<&'a [u8]>,
}

/// The columns of headers; every range was checked.
struct Headers<'a> {
    offsets: &'a [[u8; 4]],
    key: Cells<'a>,
    value: Cells<'a>,
}

impl<'a> Source<'a> {
    fn check_names(&self) -> Result<()> {
        let known = |name: &str| {
            [OFFSET, TIMESTAMP, HEADER_OFFSETS].contains(&name)
                || [&KEY[..], &VALUE, &HEADER_KEY, &HEADER_VALUE].iter().any(|names| names.contains(&name))
        };
        match self.0.iter().find(|(name, _)| !known(name)) {
            Some((name, _)) => Error::fail(Code::BadColumns, format!("there is no column {name:?}")),
            None => Ok(()),
        }
    }

    /// Some of these columns were given.
    fn any(&self, names: &[&str]) -> bool {
        self.0.iter().any(|(name, _)| names.contains(name))
    }

    fn bytes(&self, name: &'static str) -> Result<&'a [u8]> {
        match self.0.iter().find(|(given, _)| *given == name) {
            Some((_, data)) => Ok(data),
            None => Error::fail(Code::BadColumns, format!("the column {name} is missing")),
        }
    }

    /// A column of numbers of `N` bytes.
    fn numbers<const N: usize>(&self, name: &'static str) -> Result<&'a [[u8; N]]> {
        match self.bytes(name)?.as_chunks() {
            (numbers, []) => Ok(numbers),
            _ => Error::fail(Code::BadColumns, format!("the column {name} is not a whole number of numbers")),
        }
    }

    /// Offsets, bytes and (if named) validity; `count` cells, if it is known how many there must be.
    fn cells(&self, names: &[&'static str], count: Option<usize>) -> Result<Cells<'a>> {
        let offsets = self.numbers::<4>(names[0])?;
        let data = self.bytes(names[1])?;
        let valid = names.get(2).map(|name| self.bytes(name)).transpose()?;
        let cells = check_offsets(names[0], offsets, data.len())?;
        if count.unwrap_or(cells) != cells || valid.is_some_and(|valid| valid.len() != cells) {
            return Error::fail(Code::BadColumns, format!("the column {} has the wrong length", names[0]));
        }
        Ok(Cells { offsets, data, valid })
    }

    fn headers(&self, count: usize) -> Result<Option<Headers<'a>>> {
        if !self.any(&[HEADER_OFFSETS]) && !self.any(&HEADER_KEY) && !self.any(&HEADER_VALUE) {
            return Ok(None);
        }
        let offsets = self.numbers::<4>(HEADER_OFFSETS)?;
        let key = self.cells(&HEADER_KEY, None)?;
        let many = key.offsets.len() - 1;
        let value = self.cells(&HEADER_VALUE, Some(many))?;
        if check_offsets(HEADER_OFFSETS, offsets, many)? != count {
            return bad("the columns header_offsets and timestamp differ in length");
        }
        Ok(Some(Headers { offsets, key, value }))
    }
}

/// How many ranges these offsets cut; they must not fall, and end within `end`.
fn check_offsets(name: &str, offsets: &[[u8; 4]], end: usize) -> Result<usize> {
    let mut last = 0;
    for offset in offsets {
        let offset = i32::from_ne_bytes(*offset);
        if offset < last {
            return Error::fail(Code::BadColumns, format!("the column {name} falls, or is negative"));
        }
        last = offset;
    }
    if last as usize > end {
        return Error::fail(Code::BadColumns, format!("the column {name} leads past what it cuts"));
    }
    match offsets.len() {
        0 => Error::fail(Code::BadColumns, format!("the column {name} is empty")),
        many => Ok(many - 1),
    }
}

/// The range of one cell; offsets were checked.
fn range(offsets: &[[u8; 4]], at: usize) -> std::ops::Range<usize> {
    i32::from_ne_bytes(offsets[at]) as usize..i32::from_ne_bytes(offsets[at + 1]) as usize
}

impl<'a> Cells<'a> {
    #[inline]
    fn get(&self, at: usize) -> Option<&'a [u8]> {
        match self.valid {
            Some(valid) if valid[at] == 0 => None,
            _ => Some(&self.data[range(self.offsets, at)]),
        }
    }
}

impl<'a> Headers<'a> {
    /// The headers of one record, in place of what was there.
    fn collect(&self, record: usize, into: &mut Vec<(&'a [u8], Option<&'a [u8]>)>) {
        into.clear();
        into.extend(
            range(self.offsets, record).map(|at| (self.key.get(at).unwrap_or_default(), self.value.get(at))),
        );
    }
}

fn bad<T>(what: &'static str) -> Result<T> {
    Error::fail(Code::BadColumns, what)
}
