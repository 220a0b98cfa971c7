//! Raw appends: the records of a batch as plain XADDs in one pipeline, a window of pipelines in flight per connection.

use std::io::IoSlice;
use std::time::Instant;

use super::command;
use super::entry::{self, Pipeline};
use super::resp::Resp;
use crate::Outcome;
use crate::batch::Batch;
use crate::options::Options;
use crate::schedule::{Schedule, Tally};

/// Add to a stream of this connection's own until the schedule stops; then the stream must have grown by exactly what
/// was answered. Errors: an error reply, an id that is not the one sent, another length.
pub fn send(options: &Options, batch: &Batch, number: usize, schedule: Schedule) -> Outcome<Tally> {
    let mut connection = Resp::open(&options.broker)?;
    let key = entry::key(options, number);
    let entries = entry::entries(options, batch);
    let count = entries.len();
    let before = length(&mut connection, &key)?;
    let window = options.in_flight;
    let mut pipelines: Vec<Pipeline> = (0..window).map(|_| Pipeline::pack(&key, &entries)).collect();
    let mut sent_at = vec![Instant::now(); window];
    let (mut sent, mut answered) = (0_usize, 0_usize); // pipelines; each lies in its number's place of the window
    let payload = u64::from(batch.records) * options.record_bytes as u64;
    let mut tally = Tally::default();
    loop {
        let sending = options.goes_on(&schedule, tally.accepted_records);
        let first = sent;
        while sending && sent - answered < window {
            pipelines[sent % window].number(before + (sent * count) as u64);
            sent_at[sent % window] = Instant::now();
            sent += 1;
        }
        let parts = (first..sent).map(|number| IoSlice::new(&pipelines[number % window].bytes));
        connection.send(&mut parts.collect::<Vec<_>>())?;
        if sent == answered {
            break;
        }
        loop {
            let replies = connection.receive(count)?;
            if !pipelines[answered % window].is_answered_by(replies) {
                return Err(format!("{key}: not the ids that were sent").into());
            }
            tally.count(&schedule, sent_at[answered % window], u64::from(batch.records), payload);
            answered += 1;
            if answered == sent || !connection.has(count)? {
                break;
            }
        }
    }
    let grown = length(&mut connection, &key)? - before;
    if grown != (answered * count) as u64 {
        return Err(
            format!("{key}: {answered} pipelines of {count} were answered, it grew by {grown}").into()
        );
    }
    Ok(tally)
}

/// XLEN: how many entries a stream holds; 0 if there is none.
pub fn length(connection: &mut Resp, key: &str) -> Outcome<u64> {
    connection.send(&mut [IoSlice::new(&command::pack(&[b"XLEN", key.as_bytes()]))])?;
    let reply = std::str::from_utf8(connection.receive(1)?)?;
    Ok(reply.strip_prefix(':').ok_or("XLEN gave no number")?.trim_end().parse()?)
}
