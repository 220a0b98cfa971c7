//! Record batches: validated, sliced, given their offsets, searched, recompressed.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use korvet_codec::batch;
use korvet_codec::compression::Compression;
use korvet_codec::{Code, Error};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::buffer::{DETACH_ABOVE, Input};
use crate::error::OrRaise;

const TRANSACTIONAL: u8 = 1 << 4;

/// `work`, with the interpreter released if it goes over many bytes.
pub(crate) fn run<T: Send>(py: Python<'_>, bytes: usize, work: impl Send + FnOnce() -> T) -> T {
    if bytes > DETACH_ABOVE { py.detach(work) } else { work() }
}

/// As much may be decompressed while the interpreter waits: a fraction of a millisecond.
const HELD: usize = 256 * 1024;

/// `work` with its `limit` of decompressed bytes, with the interpreter released if it goes over many of them. How many
/// there are is not known before, so little is tried first.
#[inline]
pub(crate) fn unpack<T: Send>(
    py: Python<'_>,
    bytes: usize,
    limit: usize,
    work: impl Send + Fn(usize) -> Result<T, Error>,
) -> Result<T, Error> {
    unpack_holding(HELD, py, bytes, limit, work)
}

/// The same, for work that takes long for each byte: `held` of them may be decompressed while the interpreter waits.
#[inline]
fn unpack_holding<T: Send>(
    held: usize,
    py: Python<'_>,
    bytes: usize,
    limit: usize,
    work: impl Send + Fn(usize) -> Result<T, Error>,
) -> Result<T, Error> {
    if bytes <= DETACH_ABOVE {
        let tried = work(limit.min(held));
        let more = tried.as_ref().is_err_and(|error| error.code == Code::DecompressionLimit);
        if limit <= held || !more {
            return tried;
        }
    }
    py.detach(move || work(limit))
}

/// One version 2 batch's header, and where it lies in the data it was found in.
#[pyclass(frozen, get_all, module = "korvet_fast._native")]
pub(crate) struct Batch {
    /// Position in the data given.
    start: usize,
    /// Bytes, header included.
    size: usize,
    /// Offset of the first record.
    base_offset: i64,
    /// Offset of the last record.
    last_offset: i64,
    /// How many records.
    count: i32,
    /// Epoch of the leader that stored it, or -1.
    leader_epoch: i32,
    /// All flags, as written.
    attributes: i16,
    /// 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
    compression: u8,
    /// All records have the time of append.
    log_append_time: bool,
    /// Part of a transaction.
    transactional: bool,
    /// Holds a broker's markers, not records.
    control: bool,
    /// Time of the first record, in ms.
    first_timestamp: i64,
    /// Largest time, in ms, as written in the header (`validate_batch` computes it from the records).
    max_timestamp: i64,
    /// The idempotent producer, or -1.
    producer_id: i64,
    /// Its epoch, or -1.
    producer_epoch: i16,
    /// Its sequence number for the first record, or -1.
    base_sequence: i32,
}

impl From<batch::Batch> for Batch {
    fn from(batch::Batch { start, header }: batch::Batch) -> Self {
        Self {
            start,
            size: header.size,
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            count: header.count,
            leader_epoch: header.leader_epoch,
            attributes: header.attributes,
            compression: header.compression(),
            log_append_time: header.log_append_time(),
            transactional: header.transactional(),
            control: header.control(),
            first_timestamp: header.first_timestamp,
            max_timestamp: header.max_timestamp,
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
        }
    }
}

/// Producer id, its epoch, its sequence number for the first record, how many records.
type ProducerSequence = (i64, i16, i32, i32);

/// The flags for time of append, transactions and control records.
const SPECIAL: i16 = 0b11_1000;

#[pymethods]
impl Batch {
    /// (producer id, its epoch, its sequence number for the first record, how many records); None for no producer.
    #[getter]
    fn producer_sequence(&self) -> Option<ProducerSequence> {
        (self.producer_id >= 0).then_some((
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ))
    }
}

/// Validate a version 2 batch as a producer sends it. All of the data must be that batch. Verified are length, magic,
/// checksum, attributes, count, offsets, and the structure of every record. The result is what an append needs to know:
/// (size, count, largest time in ms, flags, `producer_sequence` as of a `Batch`).
///
/// The largest time is the true one, computed from the records. `flags`: the attributes that only brokers and
/// transactions set: 8 time of append, 16 transactional, 32 control; 0 for most batches. Compressed records are
/// decompressed to be verified, a piece of about 1 MiB at a time; `limit` bounds the bytes that they may become.
/// `DECOMPRESSION_LIMIT` is raised after no more work than `limit` bytes are, so that a caller may try with little and
/// leave the rest to a thread. Raises, in this order: `TRUNCATED`, `BAD_MAGIC`, `BAD_LENGTH`, `TRUNCATED`, `BAD_OFFSET`,
/// `BAD_CRC`, `BAD_ATTRIBUTES` (what only a broker sets, or nobody; transactional without a producer id),
/// `UNKNOWN_COMPRESSION`, `BAD_COUNT`, `BAD_VALUE` (a producer id without epoch or sequence), `CORRUPT_COMPRESSION`,
/// `DECOMPRESSION_LIMIT`, and for each record `BAD_RECORD`, `BAD_OFFSET`. Several batches are verified one after the
/// other, within one `limit`, and then refused: `TRAILING_BYTES`; no data is `BAD_COUNT`.
#[pyfunction]
pub(crate) fn validate_batch(
    py: Python<'_>,
    records: Input,
    limit: usize,
) -> PyResult<(usize, i32, i64, i16, Option<ProducerSequence>)> {
    let data = records.as_slice();
    let batch = unpack(py, data.len(), limit, |limit| batch::validate_batch(data, limit)).or_raise(py)?;
    let batch = Batch::from(batch);
    Ok((batch.size, batch.count, batch.max_timestamp, batch.attributes & SPECIAL, batch.producer_sequence()))
}

/// The headers of the whole version 2 batches at the front of `data`.
///
/// Stops without an error at the first batch that is incomplete, is no version 2 batch, or (`verify`) fails its
/// checksum or has an offset that is not above the one before.
#[pyfunction]
pub(crate) fn batch_headers(py: Python<'_>, data: Input, verify: bool) -> Vec<Batch> {
    let data = data.as_slice();
    run(py, data.len(), || batch::batch_headers(data, verify)).into_iter().map(Batch::from).collect()
}

/// (from, to, next): the slice `data[from:to]` holds the whole batches with offsets `start` <= o < `limit`, and `next`
/// is the offset after them; (0, 0, start) if there are no such batches.
///
/// At most `max_bytes`, but at least one whole batch if data has it. A batch is taken only if its last offset is below
/// `limit`. Only headers are read, no checksum is verified.
#[pyfunction]
pub(crate) fn slice_batches(data: Input, start: i64, limit: i64, max_bytes: usize) -> (usize, usize, i64) {
    batch::slice_batches(data.as_slice(), start, limit, max_bytes)
}

/// Write the base offset and the leader epoch into one whole batch, in place. The checksum does not cover them.
///
/// `max_timestamp` corrects the one in the header; `log_append_time` sets the timestamp type and the largest timestamp,
/// and wins over `max_timestamp`; both in ms. The checksum is computed again only if one of the two changed anything.
/// Raises `BAD_VALUE` for a read-only buffer, `BAD_OFFSET` if the last offset would not fit 64 bits, and `TRUNCATED`,
/// `BAD_MAGIC`, `BAD_LENGTH`, `TRAILING_BYTES` if this is not exactly one batch.
#[pyfunction]
pub(crate) fn assign_offsets(
    py: Python<'_>,
    mut batch: Input,
    base_offset: i64,
    leader_epoch: i32,
    max_timestamp: Option<i64>,
    log_append_time: Option<i64>,
) -> PyResult<()> {
    let bytes = batch.as_mut_slice(py)?;
    batch::assign_offsets(bytes, base_offset, leader_epoch, max_timestamp, log_append_time).or_raise(py)
}

/// The same one batch with another compression; every other header field is kept, checksum and length are new.
///
/// `limit` bounds the decompressed bytes. Raises as `assign_offsets`, `UNKNOWN_COMPRESSION`, `CORRUPT_COMPRESSION`,
/// `DECOMPRESSION_LIMIT`, `OVERSIZE`. With the compression it has, it comes back as it is.
#[pyfunction]
pub(crate) fn recompress(
    py: Python<'_>,
    batch: Input,
    compression: u8,
    limit: usize,
) -> PyResult<Bound<'_, PyByteArray>> {
    let compression = Compression::from_bits(compression).or_raise(py)?;
    let data = batch.as_slice();
    let work = |limit| batch::recompress(data, compression, limit);
    let out = unpack_holding(DETACH_ABOVE, py, data.len(), limit, work).or_raise(py)?;
    Ok(PyByteArray::new(py, &out))
}

/// (offset, timestamp) of the first record in this one batch with `start` <= offset whose time in ms is at or after `ms`,
/// or None.
///
/// All records of a batch with time of append have that time. `limit` bounds the decompressed bytes. Records behind the
/// one found are not looked at, and decompressed at most a piece of about 1 MiB with it. Raises `TRUNCATED`, `BAD_MAGIC`,
/// `BAD_LENGTH`, `TRAILING_BYTES`, `BAD_COUNT`, `BAD_RECORD`, `BAD_OFFSET` and the codes of decompression.
#[pyfunction]
#[pyo3(signature = (batch, ms, limit, start = i64::MIN))]
pub(crate) fn find_time(
    py: Python<'_>,
    batch: Input,
    ms: i64,
    limit: usize,
    start: i64,
) -> PyResult<Option<(i64, i64)>> {
    let data = batch.as_slice();
    unpack(py, data.len(), limit, |limit| batch::find_time(data, ms, limit, start)).or_raise(py)
}

/// How a batch is compressed, and whether it is part of a transaction: bits as in its attributes (KIP-98).
pub(crate) fn read_kind(bits: u8) -> korvet_codec::Result<(Compression, bool)> {
    Ok((Compression::from_bits(bits & !TRANSACTIONAL)?, bits & TRANSACTIONAL != 0))
}
