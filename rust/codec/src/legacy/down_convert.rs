//! Batches of a log in the format `legacy` to the bytes that 0.7 serves.

use std::ops::Range;

use super::message::LENGTH;
use crate::batch::{HEADER_SIZE, Header, bytes_left, payload, take_record};
use crate::{Code, Error, Result};

/// Bytes that are looked at together: the fields in front of a message take 13 at most. A power of two, so that places
/// in them need no check.
const HEAD: usize = 16;
/// The length of a key that is null, as a varint.
const NULL: u8 = 1;

/// Write the bytes of 0.7's log from position `start` up to `end` over the front of `batches`, as far as these have them
/// without a gap; returns how many bytes that are.
///
/// They may begin and end inside a message, or inside its LENGTH. Nothing where no message covers `start`. `batches`:
/// whole batches of a log in the format `legacy`. Errors of a batch's header, `BAD_COUNT`, `BAD_RECORD`, `BAD_OFFSET`; the
/// content of `batches` is lost then, too.
///
/// The bytes fit over what they are made from: a record takes more bytes around its message than a LENGTH has.
pub fn down_convert(batches: &mut [u8], start: i64, end: i64) -> Result<usize> {
    let mut made = Made { bytes: 0, next: start, end };
    let mut at = 0;
    while at < batches.len() {
        let header = Header::parse(&batches[at..])?;
        let after = at + header.size;
        if header.last_offset() >= made.next {
            payload(&header, &batches[at..after], 0)?; // what is compressed was not written by us
            if header.count < 0 {
                return Error::fail(Code::BadCount, "a batch's record count is negative");
            }
            if made.add(&mut batches[..after], at + HEADER_SIZE, &header)? {
                break;
            }
        }
        at = after;
    }
    Ok(made.bytes)
}

/// How many bytes are made at the front of the batches, and the position behind them.
struct Made {
    bytes: usize,
    next: i64,
    end: i64,
}

impl Made {
    /// Add the messages of one batch, whose records begin at `at` and end with `batches`; whether there is a gap, or the
    /// end is reached.
    fn add(&mut self, batches: &mut [u8], mut at: usize, header: &Header) -> Result<bool> {
        for _ in 0..header.count {
            let (offset_delta, message, end) = match plain_record(&batches[at..]) {
                Some(found) => found,
                None => any_record(&batches[at..])?,
            };
            let offset = header.offset_of(offset_delta)?;
            let (from, size) = (at + message.start, message.len());
            at += end;
            let after = offset.saturating_add((LENGTH + size) as i64);
            if after <= self.next {
                continue;
            }
            if offset > self.next || self.next >= self.end {
                return Ok(true);
            }
            self.put(batches, from, size, offset);
        }
        if at < batches.len() { bytes_left() } else { Ok(false) }
    }

    /// Put the rest of a message of `size` bytes, and of its LENGTH, behind what is made, as far as `end`.
    #[inline]
    fn put(&mut self, batches: &mut [u8], message: usize, size: usize, offset: i64) {
        let from = (self.next - offset) as usize;
        let to = (LENGTH + size).min(self.end.saturating_sub(offset) as usize);
        let length = (size as i32).to_be_bytes(); // a record is no larger
        let mut at = self.bytes;
        if from == 0 && to >= LENGTH {
            batches[at..at + LENGTH].copy_from_slice(&length); // nearly always; of a fixed size it takes no call
            at += LENGTH;
        } else if from < LENGTH {
            let part = &length[from..to.min(LENGTH)];
            batches[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        if to > LENGTH {
            let (first, last) = (from.max(LENGTH) - LENGTH, to - LENGTH);
            batches.copy_within(message + first..message + last, at);
        }
        self.bytes += to - from;
        self.next += (to - from) as i64;
    }
}

/// What is told of a record: its offset delta, where the message lies in it, and where it ends.
type Found = (i32, Range<usize>, usize);

/// The record at the front of `data`; None if it is longer than nearly all are, or not as
/// [`up_convert`](super::up_convert) writes them: no time of its own, no key, no headers.
#[inline]
fn plain_record(data: &[u8]) -> Option<Found> {
    let head = data.first_chunk()?;
    let mut at = 0;
    let size = short(head, &mut at)?;
    let end = at + size;
    if head[(at + 1) % HEAD] != 0 {
        return None;
    }
    at += 2; // the attributes have no meaning
    let offset_delta = short(head, &mut at)?;
    if head[at % HEAD] != NULL {
        return None;
    }
    at += 1;
    let length = short(head, &mut at)?;
    let message = at..at + length;
    let last = message.end; // the number of headers
    (last + 1 == end && data.get(last) == Some(&0)).then_some((offset_delta as i32, message, end))
}

/// As [`plain_record`], of any record. `BAD_RECORD`.
#[cold]
fn any_record(data: &[u8]) -> Result<Found> {
    let mut rest = data;
    let record = take_record(&mut rest)?;
    let Some(message) = record.value else {
        return Error::fail(Code::BadRecord, "a record that holds no message");
    };
    let start = message.as_ptr().addr() - data.as_ptr().addr();
    Ok((record.offset_delta, start..start + message.len(), data.len() - rest.len()))
}

/// A varint of up to three bytes that is not negative, and `at` behind it.
#[inline]
fn short(head: &[u8; HEAD], at: &mut usize) -> Option<usize> {
    let byte = |place: usize| usize::from(head[(*at + place) % HEAD]);
    let (raw, size) = if byte(0) < 0x80 {
        (byte(0), 1)
    } else if byte(1) < 0x80 {
        (byte(0) & 0x7f | byte(1) << 7, 2)
    } else if byte(2) < 0x80 {
        (byte(0) & 0x7f | (byte(1) & 0x7f) << 7 | byte(2) << 14, 3)
    } else {
        return None;
    };
    *at += size;
    (raw & 1 == 0).then_some(raw >> 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::{Builder, NO_HEADERS};

    proptest! {
        /// What is read fast is what is read otherwise; and each record that 0.7's messages become is read fast.
        #[test]
        fn a_plain_record_is_read_as_any(offset in 0..1_000_000, message in prop::collection::vec(any::<u8>(), 0..9000)) {
            let mut batch = Builder::new(0);
            batch.push(offset, 5, None, Some(&message), NO_HEADERS).unwrap();
            batch.push(offset, 5, None, Some(b"and another"), NO_HEADERS).unwrap();
            let bytes = batch.finish_spanning(0, 1 << 20, crate::batch::Origin::NONE, None).unwrap();
            let record = &bytes[HEADER_SIZE..];
            let found = plain_record(record).unwrap();
            prop_assert_eq!(&found, &any_record(record).unwrap());
            prop_assert_eq!(found.0, offset);
            prop_assert_eq!(&record[found.1], &message);
        }
    }

    /// A record of no time, no key and no headers, and what follows it.
    const PLAIN: [u8; 17] = *b"\x1a\0\0\x02\x01\x0emessage\0\x09\x09\x09";

    #[test]
    fn records_with_a_time_a_key_or_headers_are_read_slowly() {
        assert_eq!(plain_record(&PLAIN), Some((1, 6..13, 14)));
        for (place, byte) in [(0, 25), (2, 2), (4, 0), (5, 12), (13, 2)] {
            let mut other = PLAIN;
            other[place] = byte;
            assert_eq!(plain_record(&other), None, "byte {place}");
        }
    }

    #[test]
    fn what_is_read_fast_with_any_byte_changed_is_read_so_slowly() {
        let mut read = 0;
        for place in 0..PLAIN.len() {
            for byte in 0..=u8::MAX {
                let mut other = PLAIN;
                other[place] = byte;
                if let Some(found) = plain_record(&other) {
                    assert_eq!(found, any_record(&other).unwrap(), "byte {place} is {byte}");
                    read += 1;
                }
            }
        }
        assert!(read > 256, "{read}");
    }
}
