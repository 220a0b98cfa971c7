//! The command line: one mode, then `--name value` pairs.

use std::time::{Duration, Instant};

use crate::schedule::Schedule;
use crate::{Compression, Outcome};

pub const USAGE: &str = "\
korvet-load MODE --broker HOST:PORT --topic NAME [--name value]...

Modes
  create    create the topic and wait until every partition has a leader: --partitions N  --config name=value (repeatable)
  delete    delete the topic and wait until it is gone
  produce   send one pre-encoded batch again and again
  fetch     read partition 0 from first to last, again and again
  pipe      produce to partition 0 and read what comes at its end, on one connection more: what was read counts
  metadata  ask for all topics, again and again; --partitions at least must be listed
  copy      no broker: a batch's bytes over loopback into a file and out of it over loopback; --broker and --topic mean nothing
  redis-add    no broker: to Redis itself, the records of one batch as XADDs in a pipeline, again and again; --broker is
               the Redis server, and each connection fills a stream of its own, NAME:0, NAME:1, ...
  text-produce  PRODUCE lines to a listener of the text protocol, acks=1; a request is a line
  text-consume  CONSUME of 500 messages which text-produce wrote with the same options, from offset 0 on, again and again
  redis-range  XRANGE over what redis-add wrote with the same options, from first to last, again and again

All but create and delete print one line of JSON; any error, wrong order or failed checksum ends the run with exit status 1
  --seconds S        measured time (5)             --warm-up S       before it, not counted (1)
  --connections C    one thread each (1)           --pid P           of the broker, to report CPU and memory (repeatable;
                                                                     the first is the server, others are stores)
  --record-bytes B   value of each record (100): MB/s counts values
produce, redis-add
  --batch-bytes B    records fill a batch up to this (16384)
produce, redis-add, text-produce, text-consume
  --in-flight N      requests, or pipelines, per connection (5)
  --megabytes M      a connection ends when so much was answered, if that is before the time is over; not with
                     --rate (no limit)
produce
  --offsets O        dense: the log must grow by as many as there are records; gaps: it need not (dense)
  --compression X    none, lz4 or zstd (none)      --acks A          0, 1 or -1 (1)
  --partitions N     take turns over 0..N-1 (1)    --idle N          silent connections held open meanwhile (0)
  --numbers N,N,...  those partitions only, in place of --partitions
  --per-request N    partitions, a batch each (1)  --rate R          requests a second in all, sent when due whatever was
                                                                     answered; latency counts from then (0: as answered)
text-consume
  --blocks N         go on from offset to offset, 500 messages each, and begin anew after so many (1)
fetch, redis-range
  --max-bytes B      of the request and of the partition (1048576); redis-range asks for as many records
redis-add, redis-range
  --layout L         entries: each record an entry; batches: each batch one, as a blob (entries)";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Create,
    Delete,
    Produce,
    Fetch,
    Pipe,
    Metadata,
    Copy,
    RedisAdd,
    RedisRange,
    TextProduce,
    TextConsume,
}

/// Whether a broker gives out every offset.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Offsets {
    Dense,
    Gaps,
}

/// How records lie in a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    Entries,
    Batches,
}

pub struct Options {
    pub mode: Mode,
    pub broker: String,
    pub topic: String,
    pub configs: Vec<(String, String)>,
    pub partitions: i32,
    /// The partitions to send to, rising: 0..partitions, unless they were named.
    pub numbers: Vec<i32>,
    pub seconds: Duration,
    pub warm_up: Duration,
    pub connections: usize,
    pub pids: Vec<u32>,
    pub record_bytes: usize,
    pub batch_bytes: usize,
    pub compression: Compression,
    pub acks: i16,
    pub in_flight: usize,
    pub megabytes: u64,
    pub idle: usize,
    pub per_request: i32,
    pub rate: f64,
    pub max_bytes: i32,
    pub layout: Layout,
    pub offsets: Offsets,
    pub blocks: u64,
}

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let mode = match arguments.next().as_deref() {
            Some("create") => Mode::Create,
            Some("delete") => Mode::Delete,
            Some("produce") => Mode::Produce,
            Some("fetch") => Mode::Fetch,
            Some("pipe") => Mode::Pipe,
            Some("metadata") => Mode::Metadata,
            Some("copy") => Mode::Copy,
            Some("redis-add") => Mode::RedisAdd,
            Some("redis-range") => Mode::RedisRange,
            Some("text-produce") => Mode::TextProduce,
            Some("text-consume") => Mode::TextConsume,
            _ => return Err(USAGE.into()),
        };
        let mut options = Self {
            mode,
            broker: String::new(),
            topic: String::new(),
            configs: Vec::new(),
            partitions: 1,
            numbers: Vec::new(),
            seconds: Duration::from_secs(5),
            warm_up: Duration::from_secs(1),
            connections: 1,
            pids: Vec::new(),
            record_bytes: 100,
            batch_bytes: 16_384,
            compression: Compression::None,
            acks: 1,
            in_flight: 5,
            megabytes: u64::MAX,
            idle: 0,
            per_request: 1,
            rate: 0.0,
            max_bytes: 1 << 20,
            layout: Layout::Entries,
            offsets: Offsets::Dense,
            blocks: 1,
        };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            options.set(&name, &value).map_err(|error| format!("{name} {value}: {error}"))?;
        }
        if options.broker.is_empty() || options.topic.is_empty() {
            return Err("--broker and --topic are needed".into());
        }
        if options.numbers.is_empty() {
            options.numbers = (0..options.partitions).collect();
        }
        options.numbers.sort_unstable();
        options.partitions = options.numbers.len() as i32;
        if options.partitions < 1 || options.connections < 1 || options.in_flight < 1 || options.blocks < 1 {
            return Err("--partitions, --connections, --in-flight and --blocks must be 1 or more".into());
        }
        if !(1..=options.partitions).contains(&options.per_request) {
            return Err("--per-request must be 1 or more, and not more than --partitions".into());
        }
        if options.rate < 0.0 || (options.rate > 0.0 && options.acks == 0) {
            return Err("--rate must be positive, and needs answers: --acks 1 or -1".into());
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Outcome<()> {
        match name {
            "--broker" => value.clone_into(&mut self.broker),
            "--topic" => value.clone_into(&mut self.topic),
            "--config" => {
                let (key, value) = value.split_once('=').ok_or("name=value is needed")?;
                self.configs.push((key.to_owned(), value.to_owned()));
            }
            "--partitions" => self.partitions = value.parse()?,
            "--numbers" => self.numbers = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--seconds" => self.seconds = Duration::try_from_secs_f64(value.parse()?)?,
            "--warm-up" => self.warm_up = Duration::try_from_secs_f64(value.parse()?)?,
            "--connections" => self.connections = value.parse()?,
            "--pid" => self.pids.push(value.parse()?),
            "--record-bytes" => self.record_bytes = value.parse()?,
            "--batch-bytes" => self.batch_bytes = value.parse()?,
            "--compression" => self.compression = value.parse()?,
            "--acks" => self.acks = value.parse()?,
            "--in-flight" => self.in_flight = value.parse()?,
            "--megabytes" => self.megabytes = value.parse()?,
            "--idle" => self.idle = value.parse()?,
            "--per-request" => self.per_request = value.parse()?,
            "--rate" => self.rate = value.parse()?,
            "--blocks" => self.blocks = value.parse()?,
            "--max-bytes" => self.max_bytes = value.parse()?,
            "--offsets" => {
                self.offsets = match value {
                    "dense" => Offsets::Dense,
                    "gaps" => Offsets::Gaps,
                    _ => return Err("dense or gaps".into()),
                };
            }
            "--layout" => {
                self.layout = match value {
                    "entries" => Layout::Entries,
                    "batches" => Layout::Batches,
                    _ => return Err("entries or batches".into()),
                };
            }
            _ => return Err("no such option".into()),
        }
        Ok(())
    }

    /// Whether a connection sends more, after this many records were answered.
    pub fn goes_on(&self, schedule: &Schedule, records: u64) -> bool {
        Instant::now() < schedule.stop && records * self.record_bytes as u64 / 1_000_000 < self.megabytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_all_or_those_that_are_named() {
        let parse = |words: &str| {
            let words = format!("produce --broker b --topic t {words}");
            Options::parse(words.split_whitespace().map(str::to_owned))
        };
        assert_eq!(parse("--partitions 3").unwrap().numbers, [0, 1, 2]);
        let named = parse("--partitions 9 --numbers 7,2 --per-request 2").unwrap();
        assert_eq!((named.numbers, named.partitions), (vec![2, 7], 2));
        assert!(parse("--numbers 7,2 --per-request 3").is_err());
        assert!(parse("--numbers 7,x").is_err());
    }
}
