//! Checks that a broker makes of a batch before storing it.

use std::ops::ControlFlow;

use super::Batch;
use super::header::{Header, LOG_APPEND_TIME, TRANSACTIONAL};
use super::stamps::each_stamp;
use super::walk::{verify, whole};
use crate::compression::Compression;
use crate::{Code, Error, Result};

/// The flags that a producer may set.
const FROM_PRODUCERS: i16 = 0b0111 | LOG_APPEND_TIME | TRANSACTIONAL;

/// Verify version 2 batches as a producer sends them, all of the data, and say where each lies.
///
/// `limit`: decompressed bytes of all batches together. A large batch is decompressed and looked at piece by piece.
/// `max_timestamp` of a result is the true one, computed from the records, except where the batch says that its time is
/// that of append. In this order, batch by batch: `TRUNCATED`, `BAD_MAGIC`, `BAD_LENGTH`, `BAD_OFFSET` (header),
/// `BAD_CRC`, `BAD_ATTRIBUTES` (control, delete horizon, unknown; transactional without a producer id),
/// `UNKNOWN_COMPRESSION`, `BAD_COUNT` (no records, or not as many as offsets), `BAD_VALUE` (a producer id without epoch
/// or sequence), `CORRUPT_COMPRESSION`, `DECOMPRESSION_LIMIT`, then record by record `BAD_RECORD`, `BAD_OFFSET` (offset
/// deltas are 0, 1, 2 and so on).
pub fn validate_batches(records: &[u8], mut limit: usize) -> Result<Vec<Batch>> {
    whole(records).map(|found| check_batch(found?, &mut limit)).collect()
}

/// As [`validate_batches`], of records that must be one batch. After everything else: `BAD_COUNT` for none, `TRAILING_BYTES` for
/// several.
pub fn validate_batch(records: &[u8], mut limit: usize) -> Result<Batch> {
    let mut batches = whole(records).map(|found| check_batch(found?, &mut limit));
    let Some(first) = batches.next().transpose()? else {
        return Error::fail(Code::BadCount, "there is no record batch");
    };
    let mut number = 1;
    for batch in batches {
        batch?;
        number += 1;
    }
    if number > 1 {
        return Error::fail(Code::TrailingBytes, format!("{number} record batches where one is taken"));
    }
    Ok(first)
}

fn check_batch((Batch { start, mut header }, bytes): (Batch, &[u8]), limit: &mut usize) -> Result<Batch> {
    check_header(&header, bytes)?;
    header.max_timestamp = check_records(&header, bytes, limit)?;
    Ok(Batch { start, header })
}

fn check_header(header: &Header, bytes: &[u8]) -> Result<()> {
    verify(header, bytes)?;
    if header.attributes & !FROM_PRODUCERS != 0 {
        return Error::fail(
            Code::BadAttributes,
            "a producer sets attributes that are unknown or not its own",
        );
    }
    if header.transactional() && header.producer_id < 0 {
        return Error::fail(Code::BadAttributes, "a transactional batch has no producer id");
    }
    Compression::from_bits(header.compression())?;
    if i64::from(header.count) != i64::from(header.last_offset_delta) + 1 {
        return Error::fail(Code::BadCount, "a batch's record count and last offset disagree");
    }
    if header.producer_id >= 0 && (header.producer_epoch < 0 || header.base_sequence < 0) {
        return Error::fail(Code::BadValue, "a batch has a producer id without epoch or sequence");
    }
    Ok(())
}

/// The largest record time, after every record was found to be whole and in its place.
fn check_records(header: &Header, bytes: &[u8], limit: &mut usize) -> Result<i64> {
    let (mut place, mut latest) = (0, i64::MIN);
    each_stamp(header, bytes, limit, |stamp| {
        if stamp.offset_delta != place {
            return Error::fail(Code::BadOffset, "the offsets of a batch's records are not consecutive");
        }
        place += 1;
        latest = latest.max(header.timestamp_of(stamp.timestamp_delta)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(latest)
}
