//! A producer's batch to one of a log in the format `legacy`.

use super::message::{LENGTH, checksum};
use super::up_convert::ConvertedBatch;
use crate::batch::{Builder, Header, NO_HEADERS, Origin, Records, payload};
use crate::{Code, Error, Result};

/// Each record of one version 2 batch as a message of magic 1, not compressed; the producer's numbers are kept.
///
/// `limit` bounds the decompressed bytes. `BAD_RECORD` for a record with a key, with headers or without a value, as
/// messages of 0.7 have only values; `OVERSIZE` where a batch would be beyond 2 GiB; and the errors of
/// [`to_columns`](crate::columns::to_columns).
pub fn to_messages(batch: &[u8], limit: usize) -> Result<ConvertedBatch> {
    let header = Header::parse_only(batch)?;
    let records = payload(&header, batch, limit)?;
    let mut out = Builder::new(records.len());
    let (mut span, mut message) = (0_usize, Vec::new());
    for record in Records::new(&header, &records)? {
        let record = record?;
        let Some(value) = record.value.filter(|_| record.key.is_none() && record.headers.left() == 0) else {
            return Error::fail(
                Code::BadRecord,
                "this topic is of the format of Kafka 0.7, whose messages are values only: send records without keys \
                 and headers, and no null values",
            );
        };
        message.clear();
        message.extend_from_slice(&[1, 0]);
        message.extend_from_slice(&checksum(value).to_be_bytes());
        message.extend_from_slice(value);
        let at = i32::try_from(span).map_err(|_| Error::new(Code::Oversize, "a batch beyond 2 GiB"))?;
        out.push(at, 0, None, Some(&message), NO_HEADERS)?;
        span += LENGTH + message.len();
    }
    let origin = Origin {
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        transactional: false,
    };
    let span = span as i64;
    Ok(ConvertedBatch { bytes: out.finish_spanning(0, span, origin, None)?, span })
}
