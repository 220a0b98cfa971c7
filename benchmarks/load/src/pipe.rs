//! From producer to consumer: one connection fills partition 0, another one reads what comes, at its end.

use std::io::IoSlice;
use std::time::Instant;

use crate::Outcome;
use crate::batch;
use crate::connection::Connection;
use crate::options::Options;
use crate::requests::{self, LATEST};
use crate::schedule::{Schedule, Tally};

/// Fetch from the end on until the schedule stops. Errors as of a fetch from the beginning; no records at all is one too.
pub fn follow(options: &Options, schedule: Schedule) -> Outcome<Tally> {
    let mut connection = Connection::open(&options.broker)?;
    let mut offset = requests::list_offsets(&mut connection, &options.topic, &[0], LATEST)?[0];
    let mut tally = Tally::default();
    while Instant::now() < schedule.stop {
        let correlation = connection.next_correlation();
        let request = requests::fetch(&options.topic, 0, offset, options.max_bytes, correlation);
        let sent = Instant::now();
        connection.send(&mut [IoSlice::new(&request)])?;
        let walked = batch::walk(requests::fetched(connection.receive()?, correlation)?, offset, false)?;
        tally.count(&schedule, sent, walked.records, walked.records * options.record_bytes as u64);
        offset = walked.next_offset;
    }
    if tally.records == 0 { Err("nothing came through".into()) } else { Ok(tally) }
}
