//! A run of PRODUCE lines: read, made into one batch for each partition, and answered together.

use std::collections::HashMap;
use std::ops::Range;

use memchr::memchr;

use super::arguments::{Produce, parse_produce};
use super::encoding::{is_plain, write_number};
use super::lines::{asks_all, content};
use crate::Result;
use crate::batch::{Builder, NO_HEADERS, Origin, record_size};
use crate::compression::Compression;

const FNV_OFFSET: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;
/// Bytes that a record takes beside what [`record_size`] says: those of its length.
const PREFIX: usize = 5;
/// Bytes of memory for a batch's records at first, at most.
const ROOM: usize = 64 * 1024;

/// The topic's settings that making records into batches needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicPlan {
    /// How many partitions it has; 0: nothing can be appended.
    pub partitions: u32,
    /// The partition of the next record without a key, before the modulus.
    pub next: u32,
    /// Bytes that a batch may have, if it has more than one record.
    pub max_bytes: usize,
}

/// A batch of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The number of its topic in the run.
    pub topic: usize,
    /// Its partition.
    pub partition: u32,
    /// The whole batch, sealed, with base offset 0.
    pub batch: Vec<u8>,
}

/// The outcome of a batch: an error as `code|message`, or its first offset and the high watermark.
pub type Outcome<'o> = std::result::Result<(i64, i64), &'o str>;

/// The lines of a run, each read.
#[derive(Debug, Clone)]
pub struct ProduceRun {
    data: Vec<u8>,
    lines: Vec<Line>,
    topics: Vec<Range<usize>>,
    all: bool,
    /// The partition of each batch, by its number.
    partitions: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Line {
    /// The correlation id; None: it cannot be told back.
    id: Option<Range<usize>>,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Wrong(&'static str),
    Record { topic: usize, key: Range<usize>, value: Range<usize>, batch: Option<usize>, place: i32 },
}

impl ProduceRun {
    /// Read the lines of `data`, each with its end, as [`super::Lines`] gives them.
    #[must_use]
    pub fn new(data: Vec<u8>) -> Self {
        let first = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let all = asks_all(content(first));
        // Mostly all is well, and one look at the whole run shows it; `\r` may stand before a `\n`.
        let sound = std::str::from_utf8(&data).is_ok() && memchr::memchr2(0, b'\r', &data).is_none();
        let mut run = Self { data, lines: Vec::new(), topics: Vec::new(), all, partitions: Vec::new() };
        let (mut known, mut last, mut at) = (HashMap::new(), None, 0);
        while let Some(size) = memchr(b'\n', &run.data[at..]) {
            let line = content(&run.data[at..at + size]);
            let (id, read) = if sound || is_plain(line) { read(line) } else { (None, Err(NOT_TEXT)) };
            let what = match read {
                Err(why) => What::Wrong(why),
                Ok(found) => {
                    let topic = match last {
                        Some((name, topic)) if name == found.topic => topic,
                        _ => *known.entry(found.topic).or_insert_with(|| {
                            run.topics.push(place(&run.data, found.topic));
                            run.topics.len() - 1
                        }),
                    };
                    last = Some((found.topic, topic));
                    let (key, value) = (place(&run.data, found.key), place(&run.data, found.value));
                    What::Record { topic, key, value, batch: None, place: 0 }
                }
            };
            run.lines.push(Line { id: id.map(|id| place(&run.data, id)), what });
            at += size + 1;
        }
        run
    }

    /// The names of its topics, in the order of their first lines.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.topics.iter().map(|name| std::str::from_utf8(&self.data[name.clone()]).unwrap_or_default())
    }

    /// Whether all replicas must have the records before the lines are answered.
    #[must_use]
    pub fn all(&self) -> bool {
        self.all
    }

    /// Make the records into batches, in the order of lines within each partition, all of the time `now` in ms.
    ///
    /// `plans`: of each topic; those of topics without an entry have no partitions. Their `next` is moved on.
    pub fn build(&mut self, plans: &mut [TopicPlan], now: i64) -> Result<Vec<Built>> {
        let mut open: Vec<(usize, u32, Builder)> = Vec::new();
        let mut current: HashMap<(usize, u32), usize> = HashMap::new();
        let mut last = None;
        for line in &mut self.lines {
            let What::Record { topic, key, value, batch, place } = &mut line.what else { continue };
            let Some(plan) = plans.get_mut(*topic).filter(|plan| plan.partitions > 0) else { continue };
            let (key, value) = (&self.data[key.clone()], &self.data[value.clone()]);
            let (key, partition) = if key.is_empty() {
                let turn = plan.next % plan.partitions;
                plan.next = plan.next.wrapping_add(1);
                (None, turn)
            } else {
                (Some(key), fnv(key) % plan.partitions)
            };
            let to = (*topic, partition);
            let mut number = match last {
                Some((before, number)) if before == to => number,
                _ => *current.entry(to).or_insert(usize::MAX),
            };
            let count = open.get(number).map_or(0, |(_, _, builder)| builder.count());
            let size = record_size::<&[u8], &[u8]>(count, 0, key, Some(value), NO_HEADERS)?;
            let fits = open
                .get(number)
                .is_some_and(|(_, _, builder)| builder.len() + size as usize + PREFIX <= plan.max_bytes);
            if !fits {
                number = open.len();
                open.push((*topic, partition, Builder::new(self.data.len().min(ROOM))));
                current.insert(to, number);
            }
            let builder = &mut open[number].2;
            let delta = builder.count();
            builder.push(delta, now, key, Some(value), NO_HEADERS)?;
            (*batch, *place, last) = (Some(number), delta, Some((to, number)));
        }
        self.partitions = open.iter().map(|(_, partition, _)| *partition).collect();
        open.into_iter()
            .map(|(topic, partition, builder)| {
                let batch = builder.finish(Compression::None, 0, -1, Origin::NONE)?;
                Ok(Built { topic, partition, batch })
            })
            .collect()
    }

    /// The answers to all lines, in their order. `outcomes`: of each batch; `refused`: of each topic without partitions.
    #[must_use]
    pub fn answer(&self, outcomes: &[Outcome<'_>], refused: &[&str]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.lines.len() * 64);
        for line in &self.lines {
            out.extend_from_slice(b"V1|");
            out.extend_from_slice(line.id.as_ref().map_or(b"0", |id| &self.data[id.clone()]));
            match &line.what {
                What::Wrong(why) => fail("BAD_REQUEST|", why, &mut out),
                What::Record { topic, batch, place, .. } => {
                    let found =
                        batch.and_then(|number| Some((outcomes.get(number)?, self.partitions.get(number)?)));
                    match found {
                        None => fail("", refused.get(*topic).unwrap_or(&UNANSWERED), &mut out),
                        Some((Err(why), _)) => fail("", why, &mut out),
                        Some((Ok((base, watermark)), partition)) => {
                            out.extend_from_slice(b"|OK|partition=");
                            write_number(i64::from(*partition), &mut out);
                            out.extend_from_slice(b" offset=");
                            write_number(base + i64::from(*place), &mut out);
                            out.extend_from_slice(b" hw=");
                            write_number(*watermark, &mut out);
                        }
                    }
                }
            }
            out.push(b'\n');
        }
        out
    }
}

const NOT_TEXT: &str = "a line is UTF-8, without NUL, and without CR but at its end";
const UNANSWERED: &str = "STORAGE_ERROR|nothing is known of this record";

fn fail(code: &str, why: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"|ERR|");
    out.extend_from_slice(code.as_bytes());
    out.extend_from_slice(why.as_bytes());
}

/// The correlation id of a PRODUCE line, and its arguments or what is wrong with them.
fn read(line: &[u8]) -> (Option<&[u8]>, std::result::Result<Produce<'_>, &'static str>) {
    let mut fields = line.splitn(4, |byte| *byte == b'|').skip(1);
    match (fields.next(), fields.next(), fields.next()) {
        (Some(id), Some(_), Some(arguments)) => (Some(id), parse_produce(arguments)),
        _ => (None, Err("a line is V1|id|COMMAND|arguments")),
    }
}

/// Where `part` lies in `whole`, of which it is a slice.
fn place(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

/// FNV-1a, 32 bits.
fn fnv(key: &[u8]) -> u32 {
    key.iter().fold(FNV_OFFSET, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(FNV_PRIME))
}
