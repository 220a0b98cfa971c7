//! Message sets of Kafka 0.6 and 0.7, and the batches of logs in the format `legacy`.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use korvet_codec::legacy::{self, ConvertedBatch};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::batch::{run, unpack};
use crate::buffer::Input;
use crate::error::OrRaise;

/// A batch, and how many offsets it takes.
type Converted<'py> = (Bound<'py, PyByteArray>, i64);

fn converted(py: Python<'_>, batch: ConvertedBatch) -> Converted<'_> {
    (PyByteArray::new(py, &batch.bytes), batch.span)
}

/// Check a message set of Kafka 0.6 or 0.7, and make it into batches for a log in the format `legacy`, each with the number
/// of offsets it takes: as many as its messages have bytes.
///
/// A record's value is one message as it was sent, without its LENGTH. A wrapper that holds more messages than it has
/// bytes is stored as what it holds. What is left over behind the last whole message is left out. Batches have about
/// `size` bytes, and base offset and times 0. `largest`: bytes of a payload; `limit` bounds the decompressed bytes of all
/// wrappers together. Raises, message by message, `TRUNCATED` (not one whole message), `BAD_LENGTH`, `BAD_MAGIC`,
/// `OVERSIZE` (a payload), `BAD_CRC`; then `UNKNOWN_COMPRESSION` and for what wrappers hold the same, but `OVERSIZE`,
/// `NESTED_COMPRESSION` (more than 8), `CORRUPT_COMPRESSION`, `DECOMPRESSION_LIMIT` (more than `limit`, or than 64 times the
/// payload and 1 MiB; or more than 8 MiB of messages in place of wrappers).
#[pyfunction]
pub(crate) fn up_convert(
    py: Python<'_>,
    messages: Input,
    largest: usize,
    limit: usize,
    size: usize,
) -> PyResult<Vec<Converted<'_>>> {
    let data = messages.as_slice();
    let work = |limit| legacy::up_convert(data, largest, limit, size);
    let batches = unpack(py, data.len(), limit, work).or_raise(py)?;
    Ok(batches.into_iter().map(|batch| converted(py, batch)).collect())
}

/// Write the bytes of Kafka 0.7's log from position `start` up to `end` over the front of `batches`, as far as these have
/// them without a gap; returns how many bytes that are.
///
/// They may begin and end inside a message. Nothing where no message covers `start`. `batches`: whole batches of a log in
/// the format `legacy`, whose content is lost. Raises the errors of a batch's header, `BAD_RECORD` and `BAD_OFFSET`.
#[pyfunction]
pub(crate) fn down_convert(py: Python<'_>, mut batches: Input, start: i64, end: i64) -> PyResult<usize> {
    let data = batches.as_mut_slice(py)?;
    run(py, data.len(), || legacy::down_convert(data, start, end)).or_raise(py)
}

/// How many bytes of `messages`, from its beginning, are whole messages of Kafka 0.7 with right checksums.
#[pyfunction]
pub(crate) fn whole_messages(py: Python<'_>, messages: Input) -> usize {
    let data = messages.as_slice();
    run(py, data.len(), || legacy::whole_messages(data))
}

/// One version 2 batch of a producer as one for a log in the format `legacy`, each record a message of magic 1; and how many
/// offsets it takes. The producer's id, epoch and sequence are kept.
///
/// `limit` bounds the decompressed bytes. Raises `BAD_RECORD` for a record with a key, with headers or without a value,
/// `OVERSIZE`, and as `to_columns`.
#[pyfunction]
pub(crate) fn to_messages(py: Python<'_>, batch: Input, limit: usize) -> PyResult<Converted<'_>> {
    let data = batch.as_slice();
    let batch = unpack(py, data.len(), limit, |limit| legacy::to_messages(data, limit)).or_raise(py)?;
    Ok(converted(py, batch))
}

/// The payloads of the messages in `batches` of a log in the format `legacy`, as version 2 batches with the time of append,
/// and the offset after them. The first message is the one that covers `offset`, or the next.
///
/// The messages in a wrapper have consecutive offsets from the wrapper's own; those before `offset` are left out, unless
/// there are no others. About `max_bytes`, but one record at least if there is one. `limit` bounds the decompressed bytes;
/// fewer records are given where it is reached, and `DECOMPRESSION_LIMIT` is raised if there are none. Raises the errors of
/// a batch's header, `BAD_RECORD`, `BAD_OFFSET`, and those of a message as `up_convert`.
#[pyfunction]
pub(crate) fn to_values(
    py: Python<'_>,
    batches: Input,
    offset: i64,
    max_bytes: usize,
    limit: usize,
) -> PyResult<(Bound<'_, PyByteArray>, i64)> {
    let data = batches.as_slice();
    let work = |limit| legacy::to_values(data, offset, max_bytes, limit);
    let (values, next) = unpack(py, data.len(), limit, work).or_raise(py)?;
    Ok((PyByteArray::new(py, &values), next))
}
