//! Produce: the same encoded batch again and again, on each connection a window of requests in flight, or as many a
//! second as `--rate` says.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::batch::Batch;
use crate::connection::Connection;
use crate::options::Options;
use crate::requests::{self, Frame, LATEST};
use crate::schedule::{Schedule, Tally};

const VISIBLE_WITHIN: Duration = Duration::from_secs(20);

struct Sent {
    correlation: i32,
    place: i32,
    at: Instant,
}

/// The partitions that are next, and the answers that they must give. They are counted by their places in `numbers`.
struct Turns<'a> {
    options: &'a Options,
    batch: &'a Batch,
    place: i32,
    last_offsets: Vec<i64>,
    answered: Vec<(i32, i64)>,
}

impl<'a> Turns<'a> {
    /// `number` spreads the connections over the partitions.
    fn new(options: &'a Options, batch: &'a Batch, number: usize) -> Self {
        Self {
            options,
            batch,
            place: (number as i32 * options.partitions) / options.connections as i32,
            last_offsets: vec![-1; options.partitions as usize],
            answered: Vec::with_capacity(options.per_request as usize),
        }
    }

    fn next(&mut self, correlation: i32, at: Instant) -> (Frame, Sent) {
        let Options { topic, partitions, numbers, per_request, acks, .. } = self.options;
        let first = self.place;
        let taken = (0..*per_request).map(|step| numbers[((first + step) % partitions) as usize]);
        let frame = requests::produce(topic, taken, *acks, self.batch.bytes.len(), correlation);
        self.place = (first + per_request) % partitions;
        (frame, Sent { correlation, place: first, at })
    }

    /// An error code, a wrong partition or order, or an offset that does not rise is an error.
    fn check(&mut self, answer: &[u8], sent: &Sent) -> Outcome<()> {
        self.answered.clear();
        let correlation = requests::produced(answer, &mut self.answered)?;
        if correlation != sent.correlation || self.answered.len() != self.options.per_request as usize {
            return Err(format!("answer {correlation} where {} is next", sent.correlation).into());
        }
        let Options { partitions, numbers, per_request, .. } = self.options;
        for &(partition, offset) in &self.answered {
            let place =
                numbers.binary_search(&partition).map_err(|_| "an answer for a partition nobody asked")?;
            let last = &mut self.last_offsets[place];
            // Kafka answers the partitions of a request in whatever order it likes.
            let asked = (place as i32 - sent.place).rem_euclid(*partitions) < *per_request;
            if !asked || offset <= *last {
                return Err(
                    format!("partition {partition}: offset {offset} after {last}, or not asked for").into()
                );
            }
            *last = offset;
        }
        Ok(())
    }

    fn count(&self, tally: &mut Tally, schedule: &Schedule, sent: Instant) {
        let records = u64::from(self.batch.records) * self.options.per_request as u64;
        tally.count(schedule, sent, records, records * self.options.record_bytes as u64);
    }
}

/// Send on one connection until the schedule stops, then wait for what is still in flight.
pub fn send(options: &Options, batch: &Batch, number: usize, schedule: Schedule) -> Outcome<Tally> {
    if options.rate > 0.0 {
        at_rate(options, batch, number, schedule)
    } else {
        at_will(options, batch, number, schedule)
    }
}

/// A window of requests in flight: the next one leaves when an answer comes.
fn at_will(options: &Options, batch: &Batch, number: usize, schedule: Schedule) -> Outcome<Tally> {
    let mut connection = Connection::open(&options.broker)?;
    let mut turns = Turns::new(options, batch, number);
    let mut tally = Tally::default();
    let mut in_flight: VecDeque<Sent> = VecDeque::with_capacity(options.in_flight);
    let mut frames: Vec<Frame> = Vec::with_capacity(options.in_flight);
    let window = if options.acks == 0 { 1 } else { options.in_flight };
    loop {
        let sending = options.goes_on(&schedule, tally.accepted_records);
        frames.clear();
        while sending && in_flight.len() < window {
            let (frame, sent) = turns.next(connection.next_correlation(), Instant::now());
            frames.push(frame);
            in_flight.push_back(sent);
        }
        let parts = frames.iter().flat_map(|frame| frame.around(&batch.bytes));
        connection.send(&mut parts.map(IoSlice::new).collect::<Vec<_>>())?;
        if options.acks == 0 {
            for sent in in_flight.drain(..) {
                turns.count(&mut tally, &schedule, sent.at);
            }
        }
        if in_flight.is_empty() && !sending {
            break;
        }
        while !in_flight.is_empty() {
            let answer = connection.receive()?;
            let sent = in_flight.pop_front().ok_or("an answer nobody asked for")?;
            turns.check(answer, &sent)?;
            turns.count(&mut tally, &schedule, sent.at);
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

/// An open loop: a request leaves when it is due, whether or not earlier ones were answered, and its latency counts from
/// when it was due. Only how late this program's own timer is does not count.
fn at_rate(options: &Options, batch: &Batch, number: usize, schedule: Schedule) -> Outcome<Tally> {
    let mut receiver = Connection::open(&options.broker)?;
    let mut sender = receiver.sending_half()?;
    let apart = Duration::from_secs_f64(options.connections as f64 / options.rate);
    let first = Instant::now() + apart.mul_f64(number as f64 / options.connections as f64);
    let (tell, told) = mpsc::channel::<Sent>();
    thread::scope(|scope| {
        let sending = scope.spawn(move || -> Outcome<()> {
            let mut turns = Turns::new(options, batch, number);
            for turn in 0.. {
                let due = first + apart * turn;
                if due > schedule.stop {
                    break;
                }
                let wait = due.saturating_duration_since(Instant::now());
                thread::sleep(wait);
                let (frame, sent) =
                    turns.next(turn as i32, if wait.is_zero() { due } else { Instant::now() });
                if tell.send(sent).is_err() {
                    break; // the other half met an error, and tells it
                }
                sender.send(&mut frame.around(&batch.bytes).map(IoSlice::new).collect::<Vec<_>>())?;
            }
            Ok(())
        });
        let mut turns = Turns::new(options, batch, number);
        let mut tally = Tally::default();
        for sent in told {
            turns.check(receiver.receive()?, &sent)?;
            turns.count(&mut tally, &schedule, sent.at);
        }
        sending.join().map_err(|_| "the sending half panicked")??;
        Ok(tally)
    })
}

/// The sum of the partitions' end offsets.
pub fn stored(options: &Options) -> Outcome<i64> {
    let mut connection = Connection::open(&options.broker)?;
    Ok(requests::list_offsets(&mut connection, &options.topic, &options.numbers, LATEST)?.iter().sum())
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
