//! Entries to batches.

use std::borrow::Cow;

use super::fields::{HEADER, JSON_HEADERS, KEY, NULL_HEADER, TIMESTAMP, VALUE};
use super::json::{self, Member};
use super::range::{Fields, Range};
use crate::Result;
use crate::batch::{Builder, HEADER_SIZE, Origin, record_size};
use crate::compression::Compression;
use crate::varint::size_i32;

/// The records decoded from a reply.
#[derive(Debug, PartialEq, Eq)]
pub struct DecodedRecords {
    /// Version 2 batches, one behind the other.
    pub batches: Vec<u8>,
    /// Where a read goes on: the offset behind the last entry seen.
    pub next: i64,
    /// Entries used up.
    pub seen: usize,
    /// The entries whose ids are no offsets.
    pub skipped: usize,
}

/// The records from `start` on in a reply to XRANGE, as batches of this compression and leader epoch.
///
/// `max_bytes` of batches before compression, but one record at least. A new batch begins where an offset or a time does
/// not fit into the one before. `BAD_RESP` for anything that is not an array of entries with rising ids, `OUT_OF_RANGE`
/// for more than 62 `bits`, `OVERSIZE` for a record or a batch beyond 2 GiB.
///
/// Other programs' entries are never an error: an entry whose id is no offset is skipped; without a decimal `timestamp`
/// the id's time counts; a JSON object in `headers` becomes headers; and any other field becomes a header of its name.
pub fn decode_records(
    reply: &[u8],
    bits: u32,
    start: i64,
    max_bytes: usize,
    compression: Compression,
    leader_epoch: i32,
) -> Result<DecodedRecords> {
    let mut range = Range::new(reply, bits)?;
    let mut writer = BatchWriter::new(reply.len().min(max_bytes), compression, leader_epoch);
    let (mut fields, mut headers) = (Fields::new(), Vec::new());
    let (mut next, mut seen, mut skipped) = (start, 0, 0);
    while let Some(id) = range.next(&mut fields)? {
        match id.offset(bits) {
            Some(offset) if offset >= start => {
                let row = Row::read(&fields, offset >> bits, &mut headers);
                if !writer.push(offset, &row, &headers, max_bytes)? {
                    break;
                }
                next = offset.saturating_add(1);
            }
            Some(_) => (),
            None => {
                skipped += 1;
                next = next.max(id.offset_after(bits));
            }
        }
        seen += 1;
    }
    Ok(DecodedRecords { batches: writer.finish()?, next, seen, skipped })
}

/// One record, but for its headers.
struct Row<'a> {
    time: i64,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
}

impl<'a> Row<'a> {
    /// From an entry's fields; its headers in place of what was there. `ms`: the time in its id.
    #[inline]
    fn read(fields: &Fields<'a>, ms: i64, headers: &mut Vec<Member<'a>>) -> Self {
        headers.clear();
        let (mut time, mut key, mut value) = (None, None, None);
        for &(name, data) in fields {
            if name == KEY.name && key.is_none() {
                key = Some(data);
            } else if name == VALUE.name && value.is_none() {
                value = Some(data);
            } else if name == TIMESTAMP.name
                && time.is_none()
                && let Some(ms) = decimal(data)
            {
                time = Some(ms);
            } else if let Some(name) = name.strip_prefix(HEADER) {
                headers.push((Cow::Borrowed(name), Some(Cow::Borrowed(data))));
            } else if data.is_empty()
                && let Some(name) = name.strip_prefix(NULL_HEADER)
            {
                headers.push((Cow::Borrowed(name), None));
            } else if name == JSON_HEADERS
                && let Some(members) = json::members(data)
            {
                headers.extend(members);
            } else {
                headers.push((Cow::Borrowed(name), Some(Cow::Borrowed(data))));
            }
        }
        Self { time: time.unwrap_or(ms), key, value }
    }
}

/// A time in ms, written as at most 19 digits that may have a minus in front.
#[inline]
fn decimal(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let legal = matches!(digits.len(), 1..=19) && digits.iter().all(u8::is_ascii_digit);
    str::from_utf8(text).ok().filter(|_| legal)?.parse().ok()
}

/// Batches so far.
struct BatchWriter {
    compression: Compression,
    leader_epoch: i32,
    done: Vec<u8>,
    /// The batch begun, and its base offset.
    open: Option<(Builder, i64)>,
    /// Bytes to reserve for the first batch.
    room: usize,
    /// Bytes of all batches before compression.
    size: usize,
}

impl BatchWriter {
    fn new(room: usize, compression: Compression, leader_epoch: i32) -> Self {
        Self { compression, leader_epoch, done: Vec::new(), open: None, room, size: 0 }
    }

    /// Append a record; false if there is no room for it, which there is for the first.
    #[inline]
    fn push(&mut self, offset: i64, row: &Row, headers: &[Member], max_bytes: usize) -> Result<bool> {
        let place = self.open.as_ref().and_then(|(builder, base)| {
            Some((i32::try_from(offset - base).ok()?, builder.time_delta(row.time)?))
        });
        let (offset_delta, time_delta) = place.unwrap_or_default();
        let record = record_size(offset_delta, time_delta, row.key, row.value, headers)?;
        let size = size_i32(record) + record as usize + if place.is_none() { HEADER_SIZE } else { 0 };
        if self.size > 0 && self.size + size > max_bytes {
            return Ok(false);
        }
        self.size += size;
        if place.is_none() {
            self.close()?;
        }
        let room = &mut self.room;
        let (builder, _) = self.open.get_or_insert_with(|| (Builder::new(std::mem::take(room)), offset));
        builder.push_sized(record, offset_delta, row.time, row.key, row.value, headers);
        Ok(true)
    }

    fn close(&mut self) -> Result<()> {
        if let Some((builder, base)) = self.open.take() {
            let batch = builder.finish(self.compression, base, self.leader_epoch, Origin::NONE)?;
            if self.done.is_empty() {
                self.done = batch;
            } else {
                self.done.extend_from_slice(&batch);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<u8>> {
        self.close()?;
        Ok(self.done)
    }
}
