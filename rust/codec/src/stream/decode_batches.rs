//! Entries that are whole batches.

use std::ops::Range as Span;

use super::fields::BATCH;
use super::range::{Fields, Range};
use crate::Result;
use crate::batch::Header;

/// The batches decoded from a reply.
#[derive(Debug, PartialEq, Eq)]
pub struct DecodedBatches {
    /// Where in the reply the batches lie.
    pub places: Vec<Span<usize>>,
    /// Where a read goes on: the offset behind the last entry seen.
    pub next: i64,
    /// Entries used up.
    pub seen: usize,
    /// The entries that are no batch.
    pub skipped: usize,
}

/// The batches that do not end below `start` in a reply to XRANGE: entries whose only field is `batch` with one version 2
/// batch in it, whose base offset is that of the id. Checksums are not looked at. With 0 `bits` the id of a base offset is
/// `<base offset>-1`, as no id is 0-0.
///
/// At most `max_bytes` of them, but one at least. `BAD_RESP` for anything that is not an array of entries with rising
/// ids, `OUT_OF_RANGE` for more than 62 `bits`. Entries that are something else are skipped.
pub fn decode_batches(reply: &[u8], bits: u32, start: i64, max_bytes: usize) -> Result<DecodedBatches> {
    let mut range = Range::new(reply, bits)?;
    let mut fields = Fields::new();
    let mut found = DecodedBatches { places: Vec::new(), next: start, seen: 0, skipped: 0 };
    let mut size = 0;
    while let Some(id) = range.next(&mut fields)? {
        let offset = id.base_offset(bits);
        let batch = match fields[..] {
            [(BATCH, batch)] => {
                Header::parse_only(batch).ok().filter(|header| Some(header.base_offset) == offset)
            }
            _ => None,
        };
        if let Some(header) = batch {
            let last = header.last_offset();
            if last >= start {
                if size > 0 && size + header.size > max_bytes {
                    break;
                }
                size += header.size;
                // The batch is the last thing that was read, but for a line end.
                let end = range.position() - 2;
                found.places.push(end - header.size..end);
                found.next = last.saturating_add(1);
            }
        } else {
            found.skipped += 1;
            let after = offset.map_or_else(|| id.base_offset_after(bits), |offset| offset.saturating_add(1));
            found.next = found.next.max(after);
        }
        found.seen += 1;
    }
    Ok(found)
}
