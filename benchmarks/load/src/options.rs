//! The command line: one mode, then `--name value` pairs.

use std::time::Duration;

use crate::{Compression, Outcome};

pub const USAGE: &str = "\
korvet-load MODE --broker HOST:PORT --topic NAME [--name value]...

Modes
  create    create the topic and wait until every partition has a leader: --partitions N  --config name=value (repeatable)
  delete    delete the topic
  produce   send one pre-encoded batch again and again
  fetch     read partition 0 from first to last, again and again

produce and fetch print one line of JSON; any error code, wrong order or failed checksum ends the run with exit status 1
  --seconds S        measured time (5)             --warm-up S       before it, not counted (1)
  --connections C    one thread each (1)           --pid P           also report this process's CPU and memory
produce
  --record-bytes B   value of each record (100)    --batch-bytes B   records fill a batch up to this (16384)
  --compression X    none, lz4 or zstd (none)      --acks A          0, 1 or -1 (1)
  --in-flight N      requests per connection (5)   --partitions N    take turns over 0..N-1 (1)
  --idle N           silent connections held open meanwhile (0)
fetch
  --max-bytes B      of the request and of the partition (1048576)";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Create,
    Delete,
    Produce,
    Fetch,
}

pub struct Options {
    pub mode: Mode,
    pub broker: String,
    pub topic: String,
    pub configs: Vec<(String, String)>,
    pub partitions: i32,
    pub seconds: Duration,
    pub warm_up: Duration,
    pub connections: usize,
    pub broker_pid: Option<u32>,
    pub record_bytes: usize,
    pub batch_bytes: usize,
    pub compression: Compression,
    pub acks: i16,
    pub in_flight: usize,
    pub idle: usize,
    pub max_bytes: i32,
}

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let mode = match arguments.next().as_deref() {
            Some("create") => Mode::Create,
            Some("delete") => Mode::Delete,
            Some("produce") => Mode::Produce,
            Some("fetch") => Mode::Fetch,
            _ => return Err(USAGE.into()),
        };
        let mut options = Self {
            mode,
            broker: String::new(),
            topic: String::new(),
            configs: Vec::new(),
            partitions: 1,
            seconds: Duration::from_secs(5),
            warm_up: Duration::from_secs(1),
            connections: 1,
            broker_pid: None,
            record_bytes: 100,
            batch_bytes: 16_384,
            compression: Compression::None,
            acks: 1,
            in_flight: 5,
            idle: 0,
            max_bytes: 1 << 20,
        };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            options.set(&name, &value).map_err(|error| format!("{name} {value}: {error}"))?;
        }
        if options.broker.is_empty() || options.topic.is_empty() {
            return Err("--broker and --topic are needed".into());
        }
        if options.partitions < 1 || options.connections < 1 || options.in_flight < 1 {
            return Err("--partitions, --connections and --in-flight must be 1 or more".into());
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
            "--seconds" => self.seconds = Duration::try_from_secs_f64(value.parse()?)?,
            "--warm-up" => self.warm_up = Duration::try_from_secs_f64(value.parse()?)?,
            "--connections" => self.connections = value.parse()?,
            "--pid" => self.broker_pid = Some(value.parse()?),
            "--record-bytes" => self.record_bytes = value.parse()?,
            "--batch-bytes" => self.batch_bytes = value.parse()?,
            "--compression" => self.compression = value.parse()?,
            "--acks" => self.acks = value.parse()?,
            "--in-flight" => self.in_flight = value.parse()?,
            "--idle" => self.idle = value.parse()?,
            "--max-bytes" => self.max_bytes = value.parse()?,
            _ => return Err("no such option".into()),
        }
        Ok(())
    }
}
