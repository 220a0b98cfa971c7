//! Produce: the same encoded batch again and again, a window of requests in flight on each connection.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::batch::Batch;
use crate::connection::Connection;
use crate::options::Options;
use crate::requests::{self, LATEST, PRODUCE_TAIL};
use crate::schedule::{Schedule, Tally};

const VISIBLE_WITHIN: Duration = Duration::from_secs(20);

struct Sent {
    correlation: i32,
    partition: i32,
    at: Instant,
}

/// Send on one connection until the schedule stops, then wait for what is still in flight. `number` spreads the
/// connections over the partitions. Errors: an error code, a wrong partition or order, an offset that does not rise.
pub fn send(options: &Options, batch: &Batch, number: usize, schedule: Schedule) -> Outcome<Tally> {
    let mut connection = Connection::open(&options.broker)?;
    let payload = u64::from(batch.records) * options.record_bytes as u64;
    let mut last_offsets = vec![-1_i64; options.partitions as usize];
    let mut tally = Tally::default();
    let mut in_flight: VecDeque<Sent> = VecDeque::with_capacity(options.in_flight);
    let mut heads: Vec<Vec<u8>> = Vec::with_capacity(options.in_flight);
    let mut partition = (number as i32 * options.partitions) / options.connections as i32;
    let window = if options.acks == 0 { 1 } else { options.in_flight };
    loop {
        let sending = Instant::now() < schedule.stop;
        heads.clear();
        while sending && in_flight.len() < window {
            let correlation = connection.next_correlation();
            let size = batch.bytes.len();
            heads.push(requests::produce(&options.topic, partition, options.acks, size, correlation));
            in_flight.push_back(Sent { correlation, partition, at: Instant::now() });
            partition = (partition + 1) % options.partitions;
        }
        let parts = heads.iter().flat_map(|head| [head.as_slice(), &batch.bytes, &PRODUCE_TAIL]);
        connection.send(&mut parts.map(IoSlice::new).collect::<Vec<_>>())?;
        if options.acks == 0 {
            for sent in in_flight.drain(..) {
                tally.count(&schedule, sent.at, u64::from(batch.records), payload);
            }
        }
        if in_flight.is_empty() && !sending {
            break;
        }
        while !in_flight.is_empty() {
            let (correlation, partition, offset) = requests::produced(connection.receive()?)?;
            let sent = in_flight.pop_front().ok_or("an answer nobody asked for")?;
            let last =
                last_offsets.get_mut(partition as usize).ok_or("an answer for a partition nobody asked")?;
            if correlation != sent.correlation || partition != sent.partition || offset <= *last {
                return Err(
                    format!("partition {partition}: offset {offset} after {last}, or out of order").into()
                );
            }
            *last = offset;
            tally.count(&schedule, sent.at, u64::from(batch.records), payload);
            if !connection.has_answer() {
                break;
            }
        }
    }
    if options.acks == 0 {
        // Requests on a connection are handled in order: this answer means that all before it were.
        requests::api_versions(&mut connection)?;
    }
    Ok(tally)
}

/// The sum of the partitions' end offsets.
pub fn stored(options: &Options) -> Outcome<i64> {
    let mut connection = Connection::open(&options.broker)?;
    Ok(requests::list_offsets(&mut connection, &options.topic, options.partitions, LATEST)?.iter().sum())
}

/// Wait until the log has grown from `before` by exactly `records`: neither lost nor doubled, and readable.
pub fn confirm(options: &Options, before: i64, records: u64) -> Outcome<()> {
    let deadline = Instant::now() + VISIBLE_WITHIN;
    loop {
        let grown = stored(options)? - before;
        if grown == records as i64 {
            return Ok(());
        }
        if grown > records as i64 || Instant::now() > deadline {
            return Err(format!("{records} records were accepted, the log grew by {grown}").into());
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Open `count` connections that say hello and then nothing.
pub fn open_idle(options: &Options) -> Outcome<Vec<Connection>> {
    let mut idle = Vec::with_capacity(options.idle);
    for _ in 0..options.idle {
        let mut connection = Connection::open_idle(&options.broker)?;
        requests::api_versions(&mut connection)?;
        idle.push(connection);
    }
    Ok(idle)
}
