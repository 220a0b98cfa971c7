//! The requests sent and the answers read, at one fixed version each. Field order: kafka.apache.org/protocol.

use std::error::Error;
use std::fmt;

use crate::Outcome;
use crate::bytes::{Reader, Writer};
use crate::connection::Connection;

const CLIENT: &str = "korvet-load";
const PRODUCE: (i16, i16) = (0, 9);
const FETCH: (i16, i16) = (1, 12);
const LIST_OFFSETS: (i16, i16) = (2, 5);
const METADATA: (i16, i16) = (3, 1);
const API_VERSIONS: (i16, i16) = (18, 0);

pub const LATEST: i64 = -1;
pub const EARLIEST: i64 = -2;

/// The broker answered with an error code.
#[derive(Debug)]
pub struct BrokerError {
    request: &'static str,
    code: i16,
}

impl BrokerError {
    /// `UNKNOWN_TOPIC_OR_PARTITION`, `LEADER_NOT_AVAILABLE` or `NOT_LEADER_OR_FOLLOWER`: a topic so new that the broker
    /// does not lead it yet.
    pub fn is_new_topic(&self) -> bool {
        matches!(self.code, 3 | 5 | 6)
    }

    pub fn is_unknown_topic(&self) -> bool {
        self.code == 3
    }
}

impl fmt::Display for BrokerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} was answered with error code {}", self.request, self.code)
    }
}

impl Error for BrokerError {}

/// A request up to its header's end.
pub fn begin(api: (i16, i16), correlation: i32, flexible: bool) -> Writer {
    let mut request = Writer::default();
    request.int32(0); // length, written at the end
    request.int16(api.0);
    request.int16(api.1);
    request.int32(correlation);
    request.string(CLIENT);
    if flexible {
        request.unsigned(0); // no tagged fields
    }
    request
}

/// Write the length in front, counting `further` bytes that the caller will send behind.
pub fn end(mut request: Writer, further: usize) -> Vec<u8> {
    let length = (request.0.len() - 4 + further) as i32;
    request.0[..4].copy_from_slice(&length.to_be_bytes());
    request.0
}

/// A Produce v9 without its records: each piece but the last stands in front of a partition's batch.
pub struct Frame {
    bytes: Vec<u8>,
    cuts: Vec<usize>,
}

impl Frame {
    /// The request to send: the parts with the same `batch` between them.
    pub fn around<'a>(&'a self, batch: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let starts = std::iter::once(0).chain(self.cuts.iter().copied());
        let between = starts.zip(&self.cuts).flat_map(move |(from, &to)| [&self.bytes[from..to], batch]);
        between.chain(std::iter::once(&self.bytes[self.cuts.last().copied().unwrap_or(0)..]))
    }
}

/// A Produce v9 of a batch of `records` bytes to each of `partitions`.
pub fn produce(
    topic: &str,
    partitions: impl ExactSizeIterator<Item = i32>,
    acks: i16,
    records: usize,
    correlation: i32,
) -> Frame {
    let count = partitions.len();
    let mut request = begin(PRODUCE, correlation, true);
    request.unsigned(0); // no transaction
    request.int16(acks);
    request.int32(30_000);
    request.unsigned(2);
    request.compact_string(topic);
    request.unsigned(count as u64 + 1);
    let mut cuts = Vec::with_capacity(count);
    for partition in partitions {
        if !cuts.is_empty() {
            request.unsigned(0); // no tagged fields of the partition before
        }
        request.int32(partition);
        request.unsigned(records as u64 + 1);
        cuts.push(request.0.len());
    }
    for _ in 0..3 {
        request.unsigned(0); // no tagged fields: of the last partition, the topic, the request
    }
    Frame { bytes: end(request, count * records), cuts }
}

/// The correlation id of a Produce v9 answer, and behind what is in `found` the partitions and their base offsets; an
/// error code is an error.
pub fn produced(answer: &[u8], found: &mut Vec<(i32, i64)>) -> Outcome<i32> {
    let mut answer = Reader(answer);
    let correlation = answer.int32()?;
    answer.tags()?;
    one(answer.unsigned()?.wrapping_sub(1))?;
    answer.compact_bytes()?;
    for _ in 1..answer.unsigned()? {
        let partition = answer.int32()?;
        no_error("Produce", answer.int16()?)?;
        found.push((partition, answer.int64()?));
        answer.int64()?; // log append time
        answer.int64()?; // log start offset
        if answer.unsigned()? > 1 {
            return Err("Produce names records in error but no error".into());
        }
        answer.compact_bytes()?;
        answer.tags()?;
    }
    answer.tags()?;
    answer.int32()?; // throttle time
    answer.tags()?;
    answer.finish()?;
    Ok(correlation)
}

/// A whole Fetch v12 of one partition, outside any fetch session.
pub fn fetch(topic: &str, partition: i32, offset: i64, max_bytes: i32, correlation: i32) -> Vec<u8> {
    let mut request = begin(FETCH, correlation, true);
    request.int32(-1); // a consumer
    request.int32(1_000); // max wait, ms
    request.int32(1); // min bytes
    request.int32(max_bytes);
    request.int8(0); // read uncommitted
    request.int32(0); // no session …
    request.int32(-1); // … and none wanted
    request.unsigned(2);
    request.compact_string(topic);
    request.unsigned(2);
    request.int32(partition);
    request.int32(-1); // current leader epoch unknown
    request.int64(offset);
    request.int32(-1); // last fetched epoch unknown
    request.int64(-1); // log start offset: followers only
    request.int32(max_bytes);
    request.unsigned(0);
    request.unsigned(0);
    request.unsigned(1); // no forgotten topics
    request.compact_string(""); // rack
    request.unsigned(0);
    end(request, 0)
}

/// The records field of a Fetch v12 answer of one partition; an error code is an error.
pub fn fetched(answer: &[u8], correlation: i32) -> Outcome<&[u8]> {
    let mut answer = Reader(answer);
    if answer.int32()? != correlation {
        return Err("Fetch was answered out of order".into());
    }
    answer.tags()?;
    answer.int32()?; // throttle time
    no_error("Fetch", answer.int16()?)?;
    answer.int32()?; // session
    one(answer.unsigned()?.wrapping_sub(1))?;
    answer.compact_bytes()?;
    one(answer.unsigned()?.wrapping_sub(1))?;
    answer.int32()?;
    no_error("Fetch", answer.int16()?)?;
    answer.int64()?; // high watermark
    answer.int64()?; // last stable offset
    answer.int64()?; // log start offset
    for _ in 1..answer.unsigned()? {
        answer.int64()?;
        answer.int64()?;
        answer.tags()?;
    }
    answer.int32()?; // preferred read replica
    let records = answer.compact_bytes()?;
    answer.tags()?;
    answer.tags()?;
    answer.tags()?;
    answer.finish()?;
    Ok(records)
}

/// The offset at `timestamp` (or `LATEST`, `EARLIEST`) of each of the partitions, whose numbers rise.
pub fn list_offsets(
    connection: &mut Connection,
    topic: &str,
    partitions: &[i32],
    timestamp: i64,
) -> Outcome<Vec<i64>> {
    let correlation = connection.next_correlation();
    let mut request = begin(LIST_OFFSETS, correlation, false);
    request.int32(-1); // a consumer
    request.int8(0);
    request.int32(1);
    request.string(topic);
    request.int32(partitions.len() as i32);
    for &partition in partitions {
        request.int32(partition);
        request.int32(-1);
        request.int64(timestamp);
    }
    let mut answer = connection.ask(&end(request, 0), correlation)?;
    answer.int32()?; // throttle time
    one(u64::from(answer.int32()? as u32))?;
    answer.string()?;
    let mut offsets = vec![0; partitions.len()];
    for _ in 0..answer.int32()? {
        let partition = answer.int32()?;
        no_error("ListOffsets", answer.int16()?)?;
        answer.int64()?;
        let place = partitions
            .binary_search(&partition)
            .map_err(|_| "ListOffsets answers a partition nobody asked")?;
        offsets[place] = answer.int64()?;
        answer.int32()?;
    }
    answer.finish()?;
    Ok(offsets)
}

/// How many partitions a Metadata answer about all topics lists.
pub fn metadata(connection: &mut Connection) -> Outcome<i32> {
    let correlation = connection.next_correlation();
    let mut request = begin(METADATA, correlation, false);
    request.int32(-1); // all topics
    let mut answer = connection.ask(&end(request, 0), correlation)?;
    for _ in 0..answer.int32()? {
        answer.int32()?;
        answer.string()?;
        answer.int32()?;
        answer.string()?; // rack
    }
    answer.int32()?; // controller
    let mut listed = 0;
    for _ in 0..answer.int32()? {
        no_error("Metadata", answer.int16()?)?;
        answer.string()?;
        answer.take(1)?; // internal
        let partitions = answer.int32()?;
        listed += partitions;
        for _ in 0..partitions {
            no_error("Metadata", answer.int16()?)?;
            answer.int32()?;
            answer.int32()?; // leader
            for _ in 0..2 {
                let replicas = answer.int32()?;
                answer.take(4 * replicas.max(0) as usize)?;
            }
        }
    }
    answer.finish()?;
    Ok(listed)
}

/// Ask for the served versions: the smallest request that proves a connection is alive.
pub fn api_versions(connection: &mut Connection) -> Outcome<()> {
    let correlation = connection.next_correlation();
    let mut answer = connection.ask(&end(begin(API_VERSIONS, correlation, false), 0), correlation)?;
    no_error("ApiVersions", answer.int16()?)
}

/// Everything here is asked for one topic and one partition.
pub fn one(count: u64) -> Outcome<()> {
    if count == 1 { Ok(()) } else { Err(format!("one element expected in an answer, not {count}").into()) }
}

/// Error code 0, or `BrokerError`.
pub fn no_error(request: &'static str, code: i16) -> Outcome<()> {
    if code == 0 { Ok(()) } else { Err(BrokerError { request, code }.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(error: i16) -> Vec<u8> {
        let mut answer = Writer::default();
        answer.int32(9);
        answer.unsigned(0);
        answer.unsigned(2);
        answer.compact_string("t");
        answer.unsigned(2);
        answer.int32(3);
        answer.int16(error);
        answer.int64(70);
        answer.int64(-1);
        answer.int64(0);
        answer.unsigned(1); // no record errors
        answer.unsigned(0); // no message
        answer.unsigned(0);
        answer.unsigned(0);
        answer.int32(0);
        answer.unsigned(0);
        answer.0
    }

    fn read(answer: &[u8]) -> Outcome<(i32, Vec<(i32, i64)>)> {
        let mut found = Vec::new();
        Ok((produced(answer, &mut found)?, found))
    }

    #[test]
    fn a_produce_answer_is_read_to_its_last_byte() {
        let mut whole = answer(0);
        assert_eq!(read(&whole).unwrap(), (9, vec![(3, 70)]));
        for size in 0..whole.len() {
            assert!(read(&whole[..size]).is_err(), "cut at {size}");
        }
        whole.push(0);
        assert!(read(&whole).is_err(), "one byte too many");
    }

    #[test]
    fn a_request_of_several_partitions_is_as_long_as_it_says() {
        for count in [1, 2, 100] {
            let batch = [7_u8; 50];
            let frame = produce("t", 0..count, 1, batch.len(), 9);
            let sent: Vec<u8> = frame.around(&batch).flatten().copied().collect();
            assert_eq!(sent.len() - 4, u32::from_be_bytes(sent[..4].try_into().unwrap()) as usize);
            assert_eq!(frame.around(&batch).filter(|part| *part == batch).count(), count as usize);
        }
    }

    #[test]
    fn an_error_code_is_an_error() {
        let refused = read(&answer(6)).unwrap_err();
        assert!(refused.downcast_ref::<BrokerError>().is_some_and(BrokerError::is_new_topic));
        assert!(!read(&answer(87)).unwrap_err().downcast_ref::<BrokerError>().unwrap().is_new_topic());
    }
}
