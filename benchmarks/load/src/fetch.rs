//! Fetch: read a partition from its first record to its last, again and again, one request at a time on each connection.

use std::io::IoSlice;
use std::time::Instant;

use crate::Outcome;
use crate::batch;
use crate::connection::Connection;
use crate::options::Options;
use crate::requests::{self, EARLIEST, LATEST};
use crate::schedule::{Schedule, Tally};

const VERIFIED: u64 = 16; // every so many answers, all its checksums are recomputed

/// Fetch on one connection until the schedule stops. Errors: an error code, an answer without a whole batch, batches out
/// of order, a checksum.
pub fn read(options: &Options, schedule: Schedule) -> Outcome<Tally> {
    let mut connection = Connection::open(&options.broker)?;
    let topic = &options.topic;
    let first = requests::list_offsets(&mut connection, topic, &[0], EARLIEST)?[0];
    let end = requests::list_offsets(&mut connection, topic, &[0], LATEST)?[0];
    if first == end {
        return Err(format!("there is nothing to fetch in {topic}").into());
    }
    let mut tally = Tally::default();
    let mut offset = first;
    while Instant::now() < schedule.stop {
        let correlation = connection.next_correlation();
        let request = requests::fetch(topic, 0, offset, options.max_bytes, correlation);
        let sent = Instant::now();
        connection.send(&mut [IoSlice::new(&request)])?;
        let records = requests::fetched(connection.receive()?, correlation)?;
        let walked = batch::walk(records, offset, tally.accepted.is_multiple_of(VERIFIED))?;
        if walked.records == 0 {
            return Err(format!("no whole batch came at offset {offset} of {end}").into());
        }
        tally.count(&schedule, sent, walked.records, walked.records * options.record_bytes as u64);
        offset = if walked.next_offset >= end { first } else { walked.next_offset };
    }
    Ok(tally)
}
