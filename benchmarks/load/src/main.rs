//! A small load generator: pre-encoded requests with a window, to a Kafka broker or to Redis itself, every answer checked,
//! one line of JSON.
//! The generator must never limit the run: no work per record, blocking sockets, a thread per connection.

mod batch;
mod bytes;
mod connection;
mod copy;
mod fetch;
mod options;
mod pipe;
mod process;
mod produce;
mod redis;
mod requests;
mod schedule;
mod socket;
mod text;
mod topics;

use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use connection::Connection;
use options::{Mode, Offsets, Options};
use schedule::{Schedule, Tally, Used};

/// A result whose error is a sentence for the person at the terminal.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Kafka refuses to create more than just under 10,000 in one request.
const PARTITIONS_AT_ONCE: i32 = 5_000;
const CHANGED_WITHIN: Duration = Duration::from_secs(120);

/// A batch's compression; the number is the one in the batch's attributes.
#[derive(Clone, Copy)]
pub enum Compression {
    /// As it is.
    None = 0,
    /// The lz4 frame format.
    Lz4 = 3,
    /// Level 3.
    Zstd = 4,
}

impl FromStr for Compression {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "none" => Ok(Self::None),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd),
            _ => Err("none, lz4 or zstd"),
        }
    }
}

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)).and_then(|options| run(&options)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Outcome<String> {
    match options.mode {
        Mode::Create => create(options),
        Mode::Delete => delete(options),
        Mode::Produce => produce(options),
        Mode::Fetch => measure(options, 0, |_, schedule| fetch::read(options, schedule)),
        Mode::Pipe => pipe(options),
        Mode::Copy => {
            let batch = batch::build(options.record_bytes, options.batch_bytes, options.compression, now()?)?;
            measure(options, 0, |_, schedule| copy::run(options, &batch, schedule))
        }
        Mode::Metadata => measure(options, 0, |_, schedule| metadata(options, schedule)),
        Mode::TextProduce => measure(options, 0, |_, schedule| text::produce(options, schedule)),
        Mode::TextConsume => measure(options, 0, |_, schedule| text::consume(options, schedule)),
        Mode::RedisAdd => {
            let batch = redis::batch(options)?;
            measure(options, 0, |number, schedule| redis::add::send(options, &batch, number, schedule))
        }
        Mode::RedisRange => {
            let batch = redis::batch(options)?;
            measure(options, 0, |number, schedule| redis::range::read(options, &batch, number, schedule))
        }
    }
}

fn create(options: &Options) -> Outcome<String> {
    let started = Instant::now();
    let mut connection = Connection::open(&options.broker)?;
    let mut partitions = options.partitions.min(PARTITIONS_AT_ONCE);
    topics::create_topic(&mut connection, &options.topic, partitions, &options.configs)?;
    while partitions < options.partitions {
        partitions = options.partitions.min(partitions + PARTITIONS_AT_ONCE);
        topics::create_partitions(&mut connection, &options.topic, partitions)?;
    }
    wait(&mut connection, options, &options.numbers, false)?;
    Ok(format!("{{\"seconds\": {:.3}}}", started.elapsed().as_secs_f64()))
}

fn delete(options: &Options) -> Outcome<String> {
    let mut connection = Connection::open(&options.broker)?;
    topics::delete_topic(&mut connection, &options.topic)?;
    // Kafka answers before it is done, and who makes the topic anew would still meet the old one.
    wait(&mut connection, options, &[0], true)?;
    Ok("{}".to_owned())
}

/// Until the broker leads these partitions of the topic, or (`gone`) knows none of it.
fn wait(connection: &mut Connection, options: &Options, partitions: &[i32], gone: bool) -> Outcome<()> {
    let started = Instant::now();
    loop {
        let refused = match requests::list_offsets(connection, &options.topic, partitions, requests::LATEST) {
            Ok(_) => None,
            Err(error) => Some(error.downcast::<requests::BrokerError>()?),
        };
        if refused.as_ref().map_or(!gone, |refused| gone && refused.is_unknown_topic()) {
            return Ok(());
        }
        if started.elapsed() > CHANGED_WITHIN
            || refused.as_ref().is_some_and(|refused| !refused.is_new_topic())
        {
            return Err(refused
                .map_or_else(|| format!("{} is still there", options.topic).into(), |refused| refused as _));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Run `work` on every connection, and on `beside` more, and say what came of it.
fn measure(
    options: &Options,
    beside: usize,
    work: impl Fn(usize, Schedule) -> Outcome<Tally> + Sync,
) -> Outcome<String> {
    let schedule = Schedule::start(options.warm_up, options.seconds);
    let connections = options.connections + beside;
    let (tally, used) = schedule::run(schedule, connections, &options.pids, |number| work(number, schedule))?;
    Ok(report(options, tally, &used))
}

fn produce(options: &Options) -> Outcome<String> {
    let batch = batch::build(options.record_bytes, options.batch_bytes, options.compression, now()?)?;
    let mut idle = produce::open_idle(options)?;
    let before = produce::stored(options)?;
    let schedule = Schedule::start(options.warm_up, options.seconds);
    let work = |number| produce::send(options, &batch, number, schedule);
    let (tally, used) = schedule::run(schedule, options.connections, &options.pids, work)?;
    if options.offsets == Offsets::Dense {
        produce::confirm(options, before, tally.accepted_records)?;
    }
    for connection in &mut idle {
        requests::api_versions(connection)?;
    }
    Ok(report(options, tally, &used))
}

/// Producers beside one consumer at the end of the log: what the consumer got counts.
fn pipe(options: &Options) -> Outcome<String> {
    let batch = batch::build(options.record_bytes, options.batch_bytes, options.compression, now()?)?;
    measure(options, 1, |number, schedule| {
        if number < options.connections {
            produce::send(options, &batch, number, schedule).map(|_| Tally::default())
        } else {
            pipe::follow(options, schedule)
        }
    })
}

fn metadata(options: &Options, schedule: Schedule) -> Outcome<Tally> {
    let mut connection = Connection::open(&options.broker)?;
    let mut tally = Tally::default();
    while Instant::now() < schedule.stop {
        let sent = Instant::now();
        let listed = requests::metadata(&mut connection)?;
        if listed < options.partitions {
            return Err(format!("Metadata lists {listed} partitions, not {}", options.partitions).into());
        }
        tally.count(&schedule, sent, listed as u64, 0);
    }
    Ok(tally)
}

/// Milliseconds since 1970.
fn now() -> Outcome<i64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64)
}

fn report(options: &Options, mut tally: Tally, used: &Used) -> String {
    let seconds = options.seconds.as_secs_f64();
    let fields = [
        ("requests_per_s", tally.requests as f64 / seconds),
        ("records_per_s", tally.records as f64 / seconds),
        ("mb_per_s", tally.bytes as f64 / seconds / 1e6),
        ("p50_us", tally.percentile(0.5)),
        ("p99_us", tally.percentile(0.99)),
        ("p999_us", tally.percentile(0.999)),
        ("broker_cpu", used.broker.cpu / seconds),
        ("broker_cpu_us_per_request", used.broker.cpu * 1e6 / tally.requests.max(1) as f64),
        ("broker_cpu_s_per_gb", used.broker.cpu * 1e9 / tally.bytes.max(1) as f64),
        ("server_cpu_s_per_gb", used.server.cpu * 1e9 / tally.bytes.max(1) as f64),
        ("broker_rss_mb", used.broker.resident as f64 / 1e6),
        ("load_cpu", used.load.cpu / seconds),
        ("others_cpu", used.others / seconds),
        ("accepted", tally.accepted as f64),
        ("accepted_records", tally.accepted_records as f64),
    ];
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\": {value:.3}")).collect();
    format!("{{{}}}", fields.join(", "))
}
