//! Rows of Arrow into batches.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use korvet_codec::arrow::{self, PartitionBatch, ProducerRun};
use korvet_codec::compression::Compression;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use super::import::Lent;
use crate::error::{OrRaise, bad_value};
use crate::hint::Sequences;

/// Topic, partition, records, batch.
type Ready<'a, 'py> = (&'a str, usize, i32, Bound<'py, PyByteArray>);

/// Records as one Arrow record batch, read in place: anything with `__arrow_c_array__`, as a `pyarrow.RecordBatch`.
///
/// Columns by name: value (needed), key, topic, partition, headers; others are not looked at. value and key are string or
/// binary, topic is string, partition int32, headers list<struct<key: string, value: binary or string>>, strings and lists
/// with offsets of 32 or 64 bits, nothing dictionary-encoded.
#[pyclass(frozen, module = "korvet_fast._native")]
pub(crate) struct ArrowRecords {
    lent: Lent,
    topic: Option<String>,
    topics: Vec<String>,
}

impl ArrowRecords {
    fn rows<'a>(
        lent: &'a Lent,
        topic: Option<&'a str>,
    ) -> Result<arrow::ArrowRecords<'a>, korvet_codec::Error> {
        arrow::ArrowRecords::new(&lent.array(), topic)
    }
}

#[pymethods]
impl ArrowRecords {
    /// `topic`: where all rows go; None: to the topic in the column of that name.
    ///
    /// Raises `BAD_COLUMNS` for a column that is missing or of another type, and for a topic that is null, naming the row.
    #[new]
    fn new(py: Python<'_>, batch: Bound<'_, PyAny>, topic: Option<String>) -> PyResult<Self> {
        let lent = Lent::new(&batch)?;
        let find = || {
            Self::rows(&lent, topic.as_deref())
                .map(|rows| rows.topics().iter().map(ToString::to_string).collect())
        };
        let topics = py.detach(find).or_raise(py)?;
        Ok(Self { lent, topic, topics })
    }

    /// The distinct topics, in order of first use.
    fn topics(&self) -> Vec<String> {
        self.topics.clone()
    }

    /// (topic, partition, records, version 2 batch): full batches as they fill, then the rest by topic and partition. Rows of
    /// a partition keep their order.
    ///
    /// `sequences`: topic -> the next sequence number of each partition, so many partitions it has. A row goes to the
    /// partition its column `partition` names, else to Kafka's choice for its key; rows without key to partition `keyless`
    /// (modulo the number of partitions), and from there to the next one each time a batch is full. A batch holds at most
    /// `max_bytes` of records before compression, one record at least; `max_record` bounds a record. All have the time `now`,
    /// in ms. `producer_id` and `producer_epoch` -1: no idempotent producer, and no sequence numbers in the batches.
    ///
    /// Raises `UNKNOWN_COMPRESSION`, `BAD_VALUE` (`sequences` without one of the topics, or without partitions), and naming the
    /// row `BAD_COLUMNS` (a partition that there is not, a header that is null or has no key) and `OVERSIZE`.
    #[expect(clippy::too_many_arguments, reason = "one call per record batch says all there is to say")]
    fn batches<'py>(
        &self,
        py: Python<'py>,
        sequences: Sequences<'py>,
        keyless: usize,
        compression: u8,
        max_bytes: usize,
        max_record: usize,
        producer_id: i64,
        producer_epoch: i16,
        now: i64,
    ) -> PyResult<Vec<Ready<'_, 'py>>> {
        let compression = Compression::from_bits(compression).or_raise(py)?;
        let sequences =
            &self.topics.iter().map(|topic| of_topic(&sequences, topic)).collect::<PyResult<Vec<_>>>()?;
        let how = ProducerRun {
            sequences,
            keyless,
            compression,
            max_bytes,
            max_record,
            producer_id,
            producer_epoch,
            now,
        };
        let work = || Self::rows(&self.lent, self.topic.as_deref())?.batches(&how);
        let batches = py.detach(work).or_raise(py)?;
        let batch = |PartitionBatch { topic, partition, records, batch }: PartitionBatch| {
            (self.topics[topic].as_str(), partition, records, PyByteArray::new(py, &batch))
        };
        Ok(batches.into_iter().map(batch).collect())
    }
}

fn of_topic(sequences: &Sequences<'_>, topic: &str) -> PyResult<Vec<i32>> {
    if sequences.0.contains(topic)? {
        sequences.0.get_item(topic)?.extract()
    } else {
        Err(bad_value(sequences.0.py(), format!("there are no sequence numbers for the topic {topic:?}")))
    }
}
