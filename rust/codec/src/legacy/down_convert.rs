//! Batches of a log in the format `legacy` to the bytes that 0.7 serves.

use super::message::LENGTH;
use crate::batch::{HEADER_SIZE, Header, bytes_left, payload, take_record};
use crate::{Code, Error, Result};

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
            let mut data = &batches[at..];
            let record = take_record(&mut data)?;
            let offset = record.offset(header)?;
            let Some(message) = record.value else {
                return Error::fail(Code::BadRecord, "a record that holds no message");
            };
            let size = message.len();
            let from = message.as_ptr().addr() - batches.as_ptr().addr();
            at = batches.len() - data.len();
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
