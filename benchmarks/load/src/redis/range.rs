//! Raw reads: a stream from its first entry to its last by XRANGE, again and again, one command at a time per connection.

use std::io::IoSlice;
use std::time::Instant;

use super::add::length;
use super::command;
use super::entry::{self, ID, REPLY_ID};
use super::resp::Resp;
use crate::Outcome;
use crate::batch::Batch;
use crate::options::{Layout, Options};
use crate::schedule::{Schedule, Tally};

const VERIFIED: u64 = 16; // every so many replies, all its bytes are compared

/// Read what `add` wrote with the same options, as many records a command as fit into `--max-bytes` on the Kafka side.
/// Errors: an error reply, entries missing, out of order or changed.
pub fn read(options: &Options, batch: &Batch, number: usize, schedule: Schedule) -> Outcome<Tally> {
    let mut connection = Resp::open(&options.broker)?;
    let key = entry::key(options, number);
    let entries: Vec<Vec<u8>> =
        entry::entries(options, batch).iter().map(|each| entry::reply(each)).collect();
    let total = length(&mut connection, &key)?;
    let size = batch.bytes.len();
    let (most, records) = match options.layout {
        Layout::Entries => (options.max_bytes as usize * batch.records as usize / size, 1),
        Layout::Batches => (options.max_bytes as usize / size, u64::from(batch.records)),
    };
    let most = most.max(1) as u64;
    if total == 0 {
        return Err(format!("there is nothing to read in {key}").into());
    }
    let mut tally = Tally::default();
    let mut last = vec![b'0'; ID];
    let mut at = 0; // entries of the stream behind us
    while Instant::now() < schedule.stop {
        let start = [b"(", last.as_slice()].concat();
        let words: [&[u8]; 6] =
            [b"XRANGE", key.as_bytes(), &start, b"+", b"COUNT", &most.to_string().into_bytes()];
        let sent = Instant::now();
        connection.send(&mut [IoSlice::new(&command::pack(&words))])?;
        let wanted = most.min(total - at);
        let reply = connection.receive(1)?;
        let found = reply
            .strip_prefix(format!("*{wanted}\r\n").as_bytes())
            .filter(|found| found.len() as u64 == wanted * entries[0].len() as u64)
            .ok_or_else(|| format!("{key}: not the {wanted} entries behind {at} that must be there"))?;
        if tally.accepted.is_multiple_of(VERIFIED) {
            compare(found, &entries, at).map_err(|error| format!("{key}: {error}"))?;
        }
        let id = &found[found.len() - entries[0].len()..][REPLY_ID..REPLY_ID + ID];
        if id <= last.as_slice() {
            return Err(format!("{key}: ids do not rise").into());
        }
        last.copy_from_slice(id);
        at += wanted;
        tally.count(&schedule, sent, wanted * records, wanted * records * options.record_bytes as u64);
        if at == total {
            (last, at) = (vec![b'0'; ID], 0);
        }
    }
    Ok(tally)
}

/// Every byte of the entries from number `at` on.
fn compare(found: &[u8], entries: &[Vec<u8>], at: u64) -> Outcome<()> {
    let mut id = [0; ID];
    for (entry, number) in found.chunks_exact(entries[0].len()).zip(at..) {
        entry::write_id(&mut id, number);
        let expected = &entries[number as usize % entries.len()];
        let same = entry[..REPLY_ID] == expected[..REPLY_ID]
            && entry[REPLY_ID..REPLY_ID + ID] == id
            && entry[REPLY_ID + ID..] == expected[REPLY_ID + ID..];
        if !same {
            return Err(format!("entry {number} is not what was written").into());
        }
    }
    Ok(())
}
