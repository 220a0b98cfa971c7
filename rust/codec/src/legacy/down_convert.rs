//! Version 2 batches to old messages.

use super::message::{Message, write};
use crate::batch::{Records, payload, whole};
use crate::compression::Compression;
use crate::{Code, Error, Result};

/// Version 2 batches, all of the data, as an uncompressed message set of magic 0 or 1 with the same offsets.
///
/// Headers are lost, in magic 0 times too; control batches are skipped. `limit` bounds the decompressed bytes of all
/// batches together. `BAD_VALUE` for another magic, and the errors of [`to_columns`](crate::columns::to_columns).
pub fn down_convert(batches: &[u8], magic: u8, mut limit: usize) -> Result<Vec<u8>> {
    if magic > 1 {
        return Error::fail(Code::BadValue, "messages are of magic 0 or 1");
    }
    let mut out = Vec::with_capacity(batches.len());
    for found in whole(batches) {
        let (batch, bytes) = found?;
        let header = &batch.header;
        if header.control() {
            continue;
        }
        let payload = payload(header, bytes, limit)?;
        if header.compression() != Compression::None.bits() {
            limit -= payload.len();
        }
        for record in Records::new(header, &payload)? {
            let record = record?;
            let offset = record.offset(header)?;
            let message = Message {
                magic,
                compression: Compression::None,
                log_append_time: magic == 1 && header.log_append_time(),
                timestamp: Some(record.timestamp(header)?),
                key: record.key,
                value: record.value,
            };
            write(&mut out, offset, &message)?;
        }
    }
    Ok(out)
}
