//! The first record at or after a time.

use super::header::Header;
use super::records::{Records, payload};
use crate::Result;

/// Offset and time of the first record of this one batch whose time, in ms, is at or after `ms`.
///
/// All records of a batch stamped on append have its one time. `limit` bounds the decompressed bytes. Records after the
/// one found are not looked at. Errors as [`Header::parse_only`], of decompression, `BAD_COUNT`, `BAD_RECORD`,
/// `BAD_OFFSET`.
pub fn find_time(batch: &[u8], ms: i64, limit: usize) -> Result<Option<(i64, i64)>> {
    let header = Header::parse_only(batch)?;
    if header.log_append_time() {
        return Ok((header.max_timestamp >= ms).then_some((header.base_offset, header.max_timestamp)));
    }
    let payload = payload(&header, batch, limit)?;
    for record in Records::new(&header, &payload)? {
        let record = record?;
        let timestamp = record.timestamp(&header)?;
        if timestamp >= ms {
            return Ok(Some((record.offset(&header)?, timestamp)));
        }
    }
    Ok(None)
}
