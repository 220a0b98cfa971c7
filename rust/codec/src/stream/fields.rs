//! The names of an entry's fields, and the numbers in an entry as text.

use crate::resp::{DIGITS, decimal};

/// A field's name, and the same as a bulk string.
pub(super) struct Field {
    pub(super) name: &'static [u8],
    pub(super) packed: &'static [u8],
}

pub(super) const KEY: Field = Field { name: b"key", packed: b"$3\r\nkey\r\n" };
pub(super) const VALUE: Field = Field { name: b"value", packed: b"$5\r\nvalue\r\n" };
pub(super) const TIMESTAMP: Field = Field { name: b"timestamp", packed: b"$9\r\ntimestamp\r\n" };
/// In front of the name of a header.
pub(super) const HEADER: &[u8] = b"header.";
/// The same if its value is null; the field's value is then empty.
pub(super) const NULL_HEADER: &[u8] = b"null.header.";
/// All headers in one, as a JSON object; other programs write it.
pub(super) const JSON_HEADERS: &[u8] = b"headers";
/// A whole batch.
pub(super) const BATCH: &[u8] = b"batch";

/// The text of stream ids that mostly have the same time.
pub(super) struct Id {
    bits: u32,
    mask: u64,
    ms: u64,
    text: [u8; 2 * DIGITS + 1],
    /// Bytes of the time and the dash behind it; 0 before the first id.
    dash: usize,
}

impl Id {
    /// For offsets with this many bits of sequence, fewer than 63.
    pub(super) fn new(bits: u32) -> Self {
        Self { bits, mask: (1 << bits) - 1, ms: 0, text: [0; 2 * DIGITS + 1], dash: 0 }
    }

    /// The id of an offset, which is not negative.
    #[inline]
    pub(super) fn of(&mut self, offset: i64) -> &[u8] {
        let offset = offset as u64;
        let ms = offset >> self.bits;
        if self.dash == 0 || ms != self.ms {
            self.dash = put(&mut self.text, 0, ms);
            self.text[self.dash] = b'-';
            self.dash += 1;
            self.ms = ms;
        }
        let end = put(&mut self.text, self.dash, offset & self.mask);
        &self.text[..end]
    }
}

/// The text of times of which many in turn are the same.
#[derive(Default)]
pub(super) struct Time {
    last: Option<i64>,
    text: [u8; DIGITS],
    size: usize,
}

impl Time {
    #[inline]
    pub(super) fn of(&mut self, time: i64) -> &[u8] {
        if self.last != Some(time) {
            let sign = usize::from(time < 0);
            self.text[0] = b'-';
            self.size = put(&mut self.text, sign, time.unsigned_abs());
            self.last = Some(time);
        }
        &self.text[..self.size]
    }
}

/// Write a number's digits at a place; where they end.
#[inline]
fn put(text: &mut [u8], at: usize, number: u64) -> usize {
    let mut space = [0; DIGITS];
    let found = decimal(number, &mut space);
    text[at..at + found.len()].copy_from_slice(found);
    at + found.len()
}
