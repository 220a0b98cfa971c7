//! The first record at or after a time.

use std::ops::ControlFlow;

use super::header::Header;
use super::stamps::each_stamp;
use crate::Result;

/// Offset and time of the first record of this one batch that has `start` or a later offset, and whose time, in ms, is
/// at or after `ms`.
///
/// All records of a batch stamped on append have its one time. `limit` bounds the decompressed bytes. Records after the
/// one found are not looked at, and what is behind the piece that they lie in is not decompressed. Errors as
/// [`Header::parse_only`], of decompression, `BAD_COUNT`, `BAD_RECORD`, `BAD_OFFSET`.
pub fn find_time(batch: &[u8], ms: i64, mut limit: usize, start: i64) -> Result<Option<(i64, i64)>> {
    let header = Header::parse_only(batch)?;
    if header.log_append_time() {
        let there = header.max_timestamp >= ms && header.last_offset() >= start;
        return Ok(there.then_some((header.base_offset.max(start), header.max_timestamp)));
    }
    let mut found = None;
    each_stamp(&header, batch, &mut limit, |stamp| {
        let timestamp = header.timestamp_of(stamp.timestamp_delta)?;
        if timestamp < ms {
            return Ok(ControlFlow::Continue(()));
        }
        let offset = header.offset_of(stamp.offset_delta)?;
        if offset < start {
            return Ok(ControlFlow::Continue(()));
        }
        found = Some((offset, timestamp));
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}
