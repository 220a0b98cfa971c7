//! Rows into batches, one producer's batches for each partition.

use super::lent::Strings;
use super::partitioner::partition_for;
use super::rows::{ArrowRecords, bad};
use crate::batch::{Builder, Origin, record_size};
use crate::compression::Compression;
use crate::varint::size_i32;
use crate::{Code, Error, Result};

/// Batches are closed at this size and records refused beyond it, whatever is allowed: lengths are of 31 bits.
const MOST_BYTES: usize = 1 << 30;
/// More than the lengths and differences of a common record take.
const RECORD_OVERHEAD: usize = 24;

/// How rows become batches.
#[derive(Debug, Clone, Copy)]
pub struct ProducerRun<'a> {
    /// For each of the topics, the next sequence number of each partition.
    pub sequences: &'a [Vec<i32>],
    /// The partition that the first rows without key go to, modulo the number of partitions.
    pub keyless: usize,
    /// The compression of each batch.
    pub compression: Compression,
    /// Most bytes of the records of a batch, before compression; one record may be larger.
    pub max_bytes: usize,
    /// Most bytes of one record.
    pub max_record: usize,
    /// The producer, or -1; then batches have no sequence number.
    pub producer_id: i64,
    /// Its epoch, or -1.
    pub producer_epoch: i16,
    /// The time of all records, in ms.
    pub now: i64,
}

/// A batch, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionBatch {
    /// The index of the topic.
    pub topic: usize,
    /// Its partition.
    pub partition: usize,
    /// How many records.
    pub records: i32,
    /// The batch.
    pub batch: Vec<u8>,
}

impl ArrowRecords<'_> {
    /// Version 2 batches: full ones as they fill, then the rest by topic and partition. Rows of a partition keep their
    /// order.
    ///
    /// A row goes to the partition it names, else to that of its key; without one, to `keyless`, and to the next
    /// partition when that one's batch is full. `BAD_COLUMNS` for a partition that there is not, and for a header that is
    /// null or without key; `OVERSIZE` for a record beyond `max_record`; both name the row. `BAD_VALUE` for a topic
    /// without partitions.
    pub fn batches(&self, how: &ProducerRun) -> Result<Vec<PartitionBatch>> {
        let mut accumulators = Vec::with_capacity(how.sequences.len());
        for (topic, sequences) in self.topics.iter().zip(how.sequences) {
            if sequences.is_empty() {
                return Error::fail(Code::BadValue, format!("the topic {topic:?} has no partitions"));
            }
            accumulators.push(Accumulator::new(sequences, how.keyless));
        }
        let mut batches = Vec::new();
        let mut headers = Vec::new();
        for row in 0..self.length {
            let within = |error: Error| error.within(&format!("row {row}"));
            let topic = self.topic_of.as_ref().map_or(0, |topics| topics[row] as usize);
            if let Some(column) = &self.headers {
                column.collect(row, &mut headers).map_err(within)?;
            }
            let key = self.key.as_ref().and_then(|key| key.get(row));
            let record = Record { key, value: self.value.get(row), headers: &headers };
            let size = record.size().map_err(within)?;
            let most = how.max_record.min(MOST_BYTES);
            if size.at(0) > most {
                let size = size.at(0);
                let what = format!("a record of {size} bytes, and {most} are allowed");
                return Err(within(Error::new(Code::Oversize, what)));
            }
            let accumulator = &mut accumulators[topic];
            let named = self.partition_of(row, topic, accumulator.open.len()).map_err(within)?;
            let partition = match (named, key) {
                (Some(partition), _) => partition,
                (None, Some(key)) => partition_for(key, accumulator.open.len()),
                (None, None) => {
                    if accumulator.is_full(accumulator.keyless, size, how) {
                        batches.extend(accumulator.close(topic, accumulator.keyless, how)?);
                        accumulator.keyless = (accumulator.keyless + 1) % accumulator.open.len();
                    }
                    accumulator.keyless
                }
            };
            if accumulator.is_full(partition, size, how) {
                batches.extend(accumulator.close(topic, partition, how)?);
            }
            accumulator.push(partition, &record, size, how.now, || self.room(how));
        }
        for (topic, accumulator) in accumulators.iter_mut().enumerate() {
            for partition in 0..accumulator.open.len() {
                batches.extend(accumulator.close(topic, partition, how)?);
            }
        }
        Ok(batches)
    }

    /// The partition that a row names itself.
    fn partition_of(&self, row: usize, topic: usize, many: usize) -> Result<Option<usize>> {
        let Some((array, numbers)) = &self.partition else { return Ok(None) };
        if array.is_null(row) {
            return Ok(None);
        }
        let number = i32::from_ne_bytes(numbers[row]);
        match usize::try_from(number) {
            Ok(partition) if partition < many => Ok(Some(partition)),
            _ => bad(format!("the topic {:?} has no partition {number}, but {many}", self.topics[topic])),
        }
    }

    /// A guess at the bytes of a batch's records: all of them for rows without keys, an even share otherwise.
    fn room(&self, how: &ProducerRun) -> usize {
        let bytes =
            self.value.size() + self.key.as_ref().map_or(0, Strings::size) + self.length * RECORD_OVERHEAD;
        let partitions: usize = how.sequences.iter().map(Vec::len).sum();
        let shares =
            if self.key.is_none() && self.partition.is_none() { how.sequences.len() } else { partitions };
        (bytes / shares + bytes / 16).min(how.max_bytes)
    }
}

/// One row's record.
struct Record<'a> {
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    headers: &'a [(&'a [u8], Option<&'a [u8]>)],
}

impl Record<'_> {
    fn size(&self) -> Result<Size> {
        // The difference in time is 0, and that in offset, of one byte so far, is added later.
        let body = record_size(0, 0, self.key, self.value, self.headers)?;
        Ok(Size(body as usize - 1))
    }
}

/// Bytes of a record but for the difference in offset and its length in front.
#[derive(Clone, Copy)]
struct Size(usize);

impl Size {
    /// Bytes of the record at this place of a batch, those of its length in front not counted.
    fn body(self, place: i32) -> i32 {
        (self.0 + size_i32(place)) as i32
    }

    /// All bytes of the record at this place of a batch.
    fn at(self, place: i32) -> usize {
        let body = self.body(place);
        size_i32(body) + body as usize
    }
}

/// One topic's batches.
struct Accumulator {
    open: Vec<Open>,
    keyless: usize,
}

/// One partition's batch, if it has records.
struct Open {
    sequence: i32,
    records: i32,
    size: usize,
    builder: Option<Builder>,
}

impl Accumulator {
    fn new(sequences: &[i32], keyless: usize) -> Self {
        let open = |sequence: &i32| Open { sequence: *sequence, records: 0, size: 0, builder: None };
        Self { open: sequences.iter().map(open).collect(), keyless: keyless % sequences.len() }
    }

    /// A record of this size has to go into another batch.
    fn is_full(&self, partition: usize, size: Size, how: &ProducerRun) -> bool {
        let open = &self.open[partition];
        open.records != 0 && open.size + size.at(open.records) > how.max_bytes.min(MOST_BYTES)
    }

    fn push(
        &mut self,
        partition: usize,
        record: &Record,
        size: Size,
        now: i64,
        room: impl FnOnce() -> usize,
    ) {
        let open = &mut self.open[partition];
        let builder = open.builder.get_or_insert_with(|| Builder::new(room()));
        let body = size.body(open.records);
        builder.push_sized(body, open.records, now, record.key, record.value, record.headers);
        open.size += size.at(open.records);
        open.records += 1;
    }

    fn close(&mut self, topic: usize, partition: usize, how: &ProducerRun) -> Result<Option<PartitionBatch>> {
        let open = &mut self.open[partition];
        let Some(builder) = open.builder.take() else { return Ok(None) };
        let (producer_id, producer_epoch) = (how.producer_id, how.producer_epoch);
        let base_sequence = if producer_id < 0 { -1 } else { open.sequence };
        let origin = Origin { producer_id, producer_epoch, base_sequence, transactional: false };
        let batch = builder.finish(how.compression, 0, -1, origin)?;
        let records = std::mem::take(&mut open.records);
        // After the last number comes 0.
        open.sequence = open.sequence.wrapping_add(records) & i32::MAX;
        open.size = 0;
        Ok(Some(PartitionBatch { topic, partition, records, batch }))
    }
}
