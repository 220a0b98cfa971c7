//! A batch's records as commands that append them to a stream.

use std::borrow::Cow;

use super::fields::{HEADER, Id, KEY, NULL_HEADER, TIMESTAMP, Time, VALUE};
use crate::batch::{Header, Record, Records, payload};
use crate::ids;
use crate::resp::{Writer, array_size, bulk_size, digits};
use crate::{Code, Error, Result};

/// Most headers of a record: a script can pass on a few thousand arguments at most.
pub const MOST_HEADERS: i32 = 3500;

/// The words in front of a record's id: how many, and packed, each as a bulk string.
#[derive(Debug, Default, Clone, Copy)]
pub struct Head<'a> {
    /// How many.
    pub words: usize,
    /// Their bytes.
    pub packed: &'a [u8],
}

/// One batch on its way into a stream: measured, so that it can be written into space of the right size.
pub struct Append<'a> {
    header: Header,
    payload: Cow<'a, [u8]>,
    base: i64,
    bits: u32,
    each: Head<'a>,
    first: Head<'a>,
    size: usize,
}

impl<'a> Append<'a> {
    /// The records of this one batch at the offsets `base`, `base` + 1 and so on, one command each: the words of `first`
    /// or, after the first record, of `each`, then the id and the fields.
    ///
    /// `limit` bounds the decompressed bytes. In this order: errors as [`Header::parse_only`], `BAD_ATTRIBUTES` (a control
    /// batch), `BAD_COUNT` (no records), `OUT_OF_RANGE` (`base` below 1, the last offset beyond 63 bits, `bits` beyond
    /// 62), of decompression, and for each record `BAD_RECORD`, `BAD_OFFSET` (offset deltas are 0, 1, 2 and so on),
    /// `TOO_MANY_ELEMENTS` (more than [`MOST_HEADERS`]).
    pub fn new(
        batch: &'a [u8],
        base: i64,
        bits: u32,
        limit: usize,
        each: Head<'a>,
        first: Head<'a>,
    ) -> Result<Self> {
        let header = Header::parse_only(batch)?;
        if header.control() {
            return Error::fail(Code::BadAttributes, "a control batch holds no records to append");
        }
        if header.count <= 0 {
            return Error::fail(Code::BadCount, "a batch needs a record");
        }
        ids::mask(bits)?;
        if base < 1 || base.checked_add(i64::from(header.count) - 1).is_none() {
            return Error::fail(Code::OutOfRange, "these offsets have no stream ids");
        }
        let payload = payload(&header, batch, limit)?;
        let mut append = Self { header, payload, base, bits, each, first, size: 0 };
        let mut size = first.packed.len() + each.packed.len() * (header.count as usize - 1);
        let mut head = first.words;
        for (place, record) in (0..).zip(append.records()?) {
            let record = record?;
            if record.offset_delta != place {
                return Error::fail(Code::BadOffset, "the offsets of a batch's records are not consecutive");
            }
            if record.headers.left() > MOST_HEADERS {
                return Error::fail(Code::TooManyElements, "a record has too many headers for a stream");
            }
            let time = record.timestamp(&append.header)?;
            size += array_size(head + words(&record))
                + id_size(base + i64::from(place), bits)
                + fields_size(&record, time);
            head = each.words;
        }
        append.size = size;
        Ok(append)
    }

    /// How many bytes [`write`](Self::write) writes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Write the commands into `out`, which must be [`size`](Self::size) long.
    ///
    /// # Panics
    /// If it is not.
    pub fn write(&self, out: &mut [u8]) {
        let mut writer = Writer { out, at: 0 };
        let mut head = self.first;
        let mut id = Id::new(self.bits);
        let mut time = Time::default();
        // They were walked once when the batch was measured, so this cannot end early.
        for (place, record) in (0..).zip(self.records().into_iter().flatten().flatten()) {
            writer.header(b'*', head.words + words(&record));
            writer.write(head.packed);
            writer.bulk(id.of(self.base + place));
            if let Some(key) = record.key {
                writer.write(KEY.packed);
                writer.bulk(key);
            }
            if let Some(value) = record.value {
                writer.write(VALUE.packed);
                writer.bulk(value);
            }
            writer.write(TIMESTAMP.packed);
            writer.bulk(time.of(record.timestamp(&self.header).unwrap_or_default()));
            for (name, value) in record.headers {
                let prefix = if value.is_some() { HEADER } else { NULL_HEADER };
                writer.header(b'$', prefix.len() + name.len());
                writer.write(prefix);
                writer.write(name);
                writer.write(b"\r\n");
                writer.bulk(value.unwrap_or_default());
            }
            head = self.each;
        }
        assert_eq!(writer.at, writer.out.len(), "the space must be size() long");
    }

    fn records(&self) -> Result<Records<'_>> {
        Records::new(&self.header, &self.payload)
    }
}

/// How many words a record makes, its id among them.
fn words(record: &Record) -> usize {
    let fields = 1 + usize::from(record.key.is_some()) + usize::from(record.value.is_some());
    1 + 2 * (fields + record.headers.left() as usize)
}

/// Bytes of an offset's id, as a bulk string.
#[inline]
fn id_size(offset: i64, bits: u32) -> usize {
    let offset = offset as u64;
    bulk_size(digits(offset >> bits) + 1 + digits(offset & ((1 << bits) - 1)))
}

/// Bytes of a record's fields.
#[inline]
fn fields_size(record: &Record, time: i64) -> usize {
    let time = usize::from(time < 0) + digits(time.unsigned_abs());
    let mut size = TIMESTAMP.packed.len() + bulk_size(time);
    size += record.key.map_or(0, |key| KEY.packed.len() + bulk_size(key.len()));
    size += record.value.map_or(0, |value| VALUE.packed.len() + bulk_size(value.len()));
    for (name, value) in record.headers.clone() {
        let prefix = if value.is_some() { HEADER } else { NULL_HEADER };
        size += bulk_size(prefix.len() + name.len()) + bulk_size(value.unwrap_or_default().len());
    }
    size
}
