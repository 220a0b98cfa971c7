//! Batches of a log in the format `legacy` to the bytes that 0.7 serves.

use super::message::LENGTH;
use crate::batch::{Records, payload, whole};
use crate::{Code, Error, Result};

/// The bytes of 0.7's log from position `start` up to `end`, as far as `batches` have them without a gap.
///
/// They may begin and end inside a message, or inside its LENGTH. Nothing where no message covers `start`. `batches`:
/// whole batches of a log in the format `legacy`. Errors of a batch's header, `BAD_RECORD`, `BAD_OFFSET`.
pub fn down_convert(batches: &[u8], start: i64, end: i64) -> Result<Vec<u8>> {
    let most = usize::try_from(end.saturating_sub(start)).unwrap_or_default();
    let mut out = Vec::with_capacity(batches.len().min(most));
    let mut next = start;
    for found in whole(batches) {
        let (batch, bytes) = found?;
        if batch.header.last_offset() < next {
            continue;
        }
        let records = payload(&batch.header, bytes, 0)?;
        for record in Records::new(&batch.header, &records)? {
            let record = record?;
            let at = record.offset(&batch.header)?;
            let Some(message) = record.value else {
                return Error::fail(Code::BadRecord, "a record that holds no message");
            };
            let after = at.saturating_add((LENGTH + message.len()) as i64);
            if after <= next {
                continue;
            }
            if at > next || next >= end {
                return Ok(out);
            }
            put(&mut out, message, (next - at) as usize, (after.min(end) - at) as usize);
            next = after.min(end);
        }
    }
    Ok(out)
}

/// Append the bytes of a message and its LENGTH from `from` to `to`.
fn put(out: &mut Vec<u8>, message: &[u8], from: usize, to: usize) {
    let length = (message.len() as i32).to_be_bytes(); // a record is no larger
    if from < LENGTH {
        out.extend_from_slice(&length[from..to.min(LENGTH)]);
    }
    if to > LENGTH {
        out.extend_from_slice(&message[from.saturating_sub(LENGTH)..to - LENGTH]);
    }
}
