//! From batch to batch by their headers.

use super::Batch;
use super::header::{Header, checksum};
use crate::{Code, Error, Result};

/// The whole batches at the front of data; ends at the first that cannot be one.
struct Front<'a> {
    data: &'a [u8],
    at: usize,
}

impl Iterator for Front<'_> {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let header = Header::parse(&self.data[self.at..]).ok()?;
        let start = self.at;
        self.at += header.size;
        Some(Batch { start, header })
    }
}

/// All batches of data; an item may be the error that ends the walk.
pub(crate) struct Whole<'a> {
    data: &'a [u8],
    at: usize,
}

/// Every batch of `data` with its bytes, to the last byte. Errors as [`Header::parse`].
pub(crate) fn whole(data: &[u8]) -> Whole<'_> {
    Whole { data, at: 0 }
}

impl<'a> Iterator for Whole<'a> {
    type Item = Result<(Batch, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.data[self.at..];
        if rest.is_empty() {
            return None;
        }
        let start = self.at;
        Some(match Header::parse(rest) {
            Ok(header) => {
                self.at += header.size;
                Ok((Batch { start, header }, &rest[..header.size]))
            }
            Err(error) => {
                self.at = self.data.len();
                Err(error)
            }
        })
    }
}

/// The headers of the whole batches at the front of `data`.
///
/// Stops without error at the first that is incomplete, or is no version 2 batch, or (`verify`) fails its checksum or
/// does not continue upward in offset.
#[must_use]
pub fn batch_headers(data: &[u8], verify: bool) -> Vec<Batch> {
    let mut found: Vec<Batch> = Vec::new();
    for batch in (Front { data, at: 0 }) {
        if verify {
            let continues =
                found.last().is_none_or(|last| last.header.last_offset() < batch.header.base_offset);
            let bytes = &data[batch.start..batch.start + batch.header.size];
            if !continues || checksum(bytes) != batch.header.crc {
                break;
            }
        }
        found.push(batch);
    }
    found
}

/// `(from, to, next)`: the positions of the whole batches that hold offsets from `start` up to `limit` (excluded), and
/// the offset after them; `(0, 0, start)` if there are none.
///
/// At most `max_bytes`, but one whole batch at least if data has it. A batch is taken only if its last offset is below
/// `limit`. Headers are walked, checksums are not looked at.
#[must_use]
pub fn slice_batches(data: &[u8], start: i64, limit: i64, max_bytes: usize) -> (usize, usize, i64) {
    let (mut from, mut to, mut next) = (0, 0, start);
    for Batch { start: at, header } in (Front { data, at: 0 }) {
        if header.last_offset() < start {
            continue;
        }
        if to == 0 {
            from = at;
        }
        let end = at + header.size;
        if header.last_offset() >= limit || (to != 0 && end - from > max_bytes) {
            break;
        }
        (to, next) = (end, header.last_offset().saturating_add(1));
    }
    if to == 0 { (0, 0, start) } else { (from, to, next) }
}

/// The checksum of `bytes`, one whole batch, against its header's. `BAD_CRC`.
pub(crate) fn verify(header: &Header, bytes: &[u8]) -> Result<()> {
    if checksum(bytes) == header.crc {
        Ok(())
    } else {
        Error::fail(Code::BadCrc, "a batch fails its checksum")
    }
}
