//! When a run warms up, measures and ends; the same clock for all its connections. And what one connection measured.

use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::process::{self, Usage};

/// Answers that come between `mark` and `stop` count; requests are sent until `stop`.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub mark: Instant,
    pub stop: Instant,
}

impl Schedule {
    pub fn start(warm_up: Duration, measured: Duration) -> Self {
        let mark = Instant::now() + warm_up;
        Self { mark, stop: mark + measured }
    }
}

/// The counts of one connection, or of all after `merge`.
#[derive(Default)]
pub struct Tally {
    /// Answers between mark and stop.
    pub requests: u64,
    pub records: u64,
    /// Record bytes, as the mode counts them.
    pub bytes: u64,
    /// All requests answered without error, warm-up and the last ones after stop included, and their records.
    pub accepted: u64,
    pub accepted_records: u64,
    /// Nanoseconds from request to answer, of the counted ones.
    pub latencies: Vec<u32>,
}

impl Tally {
    /// Count one answer, unless it came outside the measured time.
    pub fn count(&mut self, schedule: &Schedule, sent: Instant, records: u64, bytes: u64) {
        self.accepted += 1;
        self.accepted_records += records;
        let now = Instant::now();
        if now < schedule.mark || now > schedule.stop {
            return;
        }
        self.requests += 1;
        self.records += records;
        self.bytes += bytes;
        if sent >= schedule.mark {
            self.latencies.push(u32::try_from((now - sent).as_nanos()).unwrap_or(u32::MAX));
        }
    }

    /// Count so many requests of one record each that were answered together; their latencies are not told.
    pub fn count_many(&mut self, schedule: &Schedule, records: u64, record_bytes: u64) {
        self.accepted += records;
        self.accepted_records += records;
        let now = Instant::now();
        if now >= schedule.mark && now <= schedule.stop {
            self.requests += records;
            self.records += records;
            self.bytes += records * record_bytes;
        }
    }

    fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.records += other.records;
        self.bytes += other.bytes;
        self.accepted += other.accepted;
        self.accepted_records += other.accepted_records;
        self.latencies.extend(other.latencies);
    }

    /// Microseconds that `share` of the counted requests stayed under; 0 if none were timed. Sorts on every call.
    pub fn percentile(&mut self, share: f64) -> f64 {
        self.latencies.sort_unstable();
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        self.latencies.get(at).map_or(0.0, |&nanoseconds| f64::from(nanoseconds) / 1e3)
    }
}

/// CPU time used during the measurement: `broker` by all its processes, `server` by the first of them. `others`: CPU
/// seconds of everything but the broker and this process.
pub struct Used {
    pub broker: Usage,
    pub server: Usage,
    pub load: Usage,
    pub others: f64,
}

struct Moment {
    broker: Usage,
    server: Usage,
    load: Usage,
    machine: f64,
}

impl Moment {
    fn take(broker: &[u32]) -> Outcome<Self> {
        let (broker, server) = process::usage(broker)?;
        Ok(Self {
            broker,
            server,
            load: process::usage_of(std::process::id())?,
            machine: process::machine()?,
        })
    }
}

/// Run `work` for each connection on its own thread; meanwhile watch what the broker's processes and this one use.
pub fn run<W>(schedule: Schedule, connections: usize, broker: &[u32], work: W) -> Outcome<(Tally, Used)>
where
    W: Fn(usize) -> Outcome<Tally> + Sync,
{
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..connections).map(|number| scope.spawn(move || work(number))).collect();
        thread::sleep(schedule.mark.saturating_duration_since(Instant::now()));
        let before = Moment::take(broker)?;
        thread::sleep(schedule.stop.saturating_duration_since(Instant::now()));
        let after = Moment::take(broker)?;
        let mut total = Tally::default();
        for thread in threads {
            total.merge(thread.join().map_err(|_| "a connection's thread panicked")??);
        }
        let (broker, load) = (after.broker.since(&before.broker), after.load.since(&before.load));
        let others = (after.machine - before.machine - broker.cpu - load.cpu).max(0.0);
        Ok((total, Used { broker, server: after.server.since(&before.server), load, others }))
    })
}
