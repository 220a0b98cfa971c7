//! Batches with other header fields, or another compression.

use super::header::{ATTRIBUTES_AT, HEADER_SIZE, Header, LOG_APPEND_TIME, checksum, put};
use super::records::payload;
use crate::compression::{Compression, compress};
use crate::{Code, Error, Result};

/// Give one batch its place in a log, in place.
///
/// `max_timestamp` mends a header that does not tell the true one; `log_append_time` sets the timestamp type and the
/// time of all records, and wins over the other. Both are in ms, and the checksum is computed anew only if one of them
/// changed anything. Errors as [`Header::parse_only`], and `BAD_OFFSET` if the last offset would not fit 64 bits; the
/// batch is then as it was.
pub fn assign_offsets(
    batch: &mut [u8],
    base_offset: i64,
    leader_epoch: i32,
    max_timestamp: Option<i64>,
    log_append_time: Option<i64>,
) -> Result<()> {
    let header = Header::parse_only(batch)?;
    if base_offset.checked_add(i64::from(header.last_offset_delta)).is_none() {
        return Error::fail(Code::BadOffset, "the batch's last offset would not fit 64 bits");
    }
    put(batch, 0, base_offset.to_be_bytes());
    put(batch, 12, leader_epoch.to_be_bytes());
    let attributes = header.attributes | if log_append_time.is_some() { LOG_APPEND_TIME } else { 0 };
    let latest = log_append_time.or(max_timestamp).unwrap_or(header.max_timestamp);
    if attributes != header.attributes || latest != header.max_timestamp {
        put(batch, ATTRIBUTES_AT, attributes.to_be_bytes());
        put(batch, 35, latest.to_be_bytes());
        put(batch, 17, checksum(batch).to_be_bytes());
    }
    Ok(())
}

/// The same batch with its records compressed by `compression`; every other field is kept, length and checksum are new.
///
/// `limit` bounds the decompressed bytes. Errors as [`Header::parse_only`], of decompression, and `OVERSIZE`.
pub fn recompress(batch: &[u8], compression: Compression, limit: usize) -> Result<Vec<u8>> {
    let header = Header::parse_only(batch)?;
    if header.compression() == compression.bits() {
        return Ok(batch.to_vec());
    }
    let records = payload(&header, batch, limit)?;
    let mut out = vec![0; HEADER_SIZE];
    compress(compression, &records, &mut out);
    let attributes = header.attributes_with(compression.bits());
    Header { attributes, ..header }.seal(&mut out)?;
    Ok(out)
}
