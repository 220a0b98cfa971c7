//! Every record of a batch with its key and value, of which little more lies in memory than one at a time.

use std::ops::ControlFlow;

use super::header::{HEADER_SIZE, Header};
use super::records::{Record, Records, broken, bytes_left, record};
use crate::Result;
use crate::compression::{Compression, PIECE, Unpack};

/// Show `see` the records of `batch` (one whole batch) until it breaks off.
///
/// `limit`: decompressed bytes; what they were is taken off it. A compressed batch comes out piece by piece, so the
/// memory is that of a piece and of the largest record. `UNKNOWN_COMPRESSION`, `CORRUPT_COMPRESSION`,
/// `DECOMPRESSION_LIMIT`, `BAD_COUNT`, `BAD_RECORD`, and what `see` raises.
pub(crate) fn each_record(
    header: &Header,
    batch: &[u8],
    limit: &mut usize,
    mut see: impl FnMut(&Record<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let records = &batch[HEADER_SIZE..header.size];
    let compression = Compression::from_bits(header.compression())?;
    if compression == Compression::None {
        for record in Records::new(header, records)? {
            if see(&record?)?.is_break() {
                break;
            }
        }
        return Ok(());
    }
    let mut unpack = Unpack::new(compression, records, *limit, PIECE)?;
    let (mut held, mut left) = (Vec::new(), header.count);
    loop {
        let piece = unpack.advance()?;
        if piece.is_empty() {
            return if left > 0 { broken() } else { Ok(()) };
        }
        held.extend_from_slice(piece);
        *limit = unpack.left();
        let mut rest = &held[..];
        while left > 0 {
            let mut ahead = rest;
            let Ok(one) = record(&mut ahead) else { break };
            if see(&one)?.is_break() {
                return Ok(());
            }
            (rest, left) = (ahead, left - 1);
        }
        if left <= 0 && !rest.is_empty() {
            return bytes_left();
        }
        let used = held.len() - rest.len();
        held.drain(..used);
    }
}
