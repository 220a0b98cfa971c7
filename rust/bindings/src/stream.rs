//! Batches into Redis streams and back.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use korvet_codec::compression::Compression;
use korvet_codec::resp::words;
use korvet_codec::stream::{Append, DecodedBatches, DecodedRecords, Fence, Head};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

use crate::batch::{run, unpack};
use crate::buffer::{Input, LEND_FROM, Lent, cut};
use crate::commands::Argument;
use crate::error::OrRaise;

/// Bytes that the commands around a transaction's batches take, about: room for them is made at once.
const ROOM: usize = 3072;

/// Encode one version 2 batch as Redis commands that append its records to a stream, `XADD key id field value …` for
/// each.
///
/// The ids stand for the offsets `base`, `base` + 1 and so on: an id is `ms-sequence`, its offset `(ms << bits) |
/// sequence`. Fields: `key` and `value` (absent: null), `timestamp` (ms; of a batch with time of append that time),
/// `header.NAME` for each header in order, and for one whose value is null `null.header.NAME` with an empty value.
/// `first`: the arguments in front of the first record's id in place of `XADD key`, for example those of a script that
/// checks something before it adds the record. `limit` bounds the decompressed bytes.
///
/// Raises `TRUNCATED`, `BAD_MAGIC`, `BAD_LENGTH`, `BAD_OFFSET`, `TRAILING_BYTES` if this is not exactly one batch;
/// `BAD_ATTRIBUTES` (a control batch), `BAD_COUNT` (no records), `OUT_OF_RANGE` (`base` below 1, as no id is 0-0; offsets
/// beyond 63 bits; more than 62 `bits`), the codes of decompression, and for each record `BAD_RECORD`, `BAD_OFFSET` (not
/// the next offset), `TOO_MANY_ELEMENTS` (more than 3,500 headers, too many arguments for a script).
#[pyfunction]
#[pyo3(signature = (key, batch, base, bits, limit, first = None))]
pub(crate) fn encode_append<'py>(
    py: Python<'py>,
    key: Argument<'py>,
    batch: Input,
    base: i64,
    bits: u32,
    limit: usize,
    first: Option<Vec<Argument<'py>>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let each = words(&[&b"XADD"[..], key.as_ref()]);
    let each = Head { words: 2, packed: &each };
    let packed = first.as_deref().map(words);
    let first = match (&first, &packed) {
        (Some(first), Some(packed)) => Head { words: first.len(), packed },
        _ => each,
    };
    let data = batch.as_slice();
    let append = unpack(py, data.len(), limit, |limit| Append::new(data, base, bits, limit, each, first))
        .or_raise(py)?;
    PyBytes::new_with(py, append.size(), |out| {
        run(py, out.len(), || append.write(out));
        Ok(())
    })
}

/// Encode a transaction that appends whole batches to a stream: MULTI, `EVAL guard 2 key state token end`, `XADD key id
/// batch DATA` for each, `EVAL close 2 key state token end` with the state's fields as they are afterwards, EXEC.
///
/// `scripts`: guard and close. `keys`: of the stream and of its state. `compared`: the fencing token, and the end before.
/// `end`, `totals`: the fields `end`; `size`, `count` and `time`. `batches`: each a tuple of its bytes, its first
/// offset, and what is not looked at. An id is `ms-sequence`, its offset `(ms << bits) | sequence`; without `bits` it is
/// `<offset>-1`. In parts: a batch of 4 KiB and more is one, the very object given. Raises `OUT_OF_RANGE` (a negative
/// offset, more than 62 `bits`).
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "a class around them would be made once a call")]
pub(crate) fn encode_append_batches<'py>(
    py: Python<'py>,
    scripts: (Argument<'py>, Argument<'py>),
    keys: (Argument<'py>, Argument<'py>),
    compared: (Argument<'py>, Argument<'py>),
    end: Argument<'py>,
    totals: (i64, i64, i64),
    batches: Vec<(Lent<'py>, i64, i64, i64)>,
    bits: u32,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let fence = Fence {
        scripts: [scripts.0.as_ref(), scripts.1.as_ref()],
        keys: [keys.0.as_ref(), keys.1.as_ref()],
        compared: [compared.0.as_ref(), compared.1.as_ref()],
    };
    let mut parts = Vec::with_capacity(2 * batches.len() + 1);
    let mut packed = Vec::with_capacity(ROOM);
    fence.open(&mut packed);
    for (data, first, _, _) in batches {
        let bytes = data.as_ref();
        fence.add(&mut packed, first, bits, bytes.len()).or_raise(py)?;
        if bytes.len() < LEND_FROM {
            packed.extend_from_slice(bytes);
        } else {
            parts.push(PyBytes::new(py, &packed).into_any());
            packed.clear();
            parts.push(data.into_object());
        }
        packed.extend_from_slice(b"\r\n");
    }
    fence.close(&mut packed, end.as_ref(), [("size", totals.0), ("count", totals.1), ("time", totals.2)]);
    parts.push(PyBytes::new(py, &packed).into_any());
    Ok(parts)
}

/// Decode a raw reply to XRANGE whose entries are records: (version 2 batches one behind the other, next, seen, skipped).
/// The batches hold the records from `start` on.
///
/// `next`: the offset behind the last entry read, where the next read goes on; never below `start`. `seen`: how many
/// entries were read; all of them, unless the rest would go beyond `max_bytes`, which bounds the batches before
/// compression but not the first record. `skipped`: how many of these have an id that is no offset, because the
/// sequence has more than `bits` bits or the time has too many; no consumer can be given such an entry, and `next` goes
/// past it. A new batch begins where an offset is 2^31 or a time 2^63 ms away from the first in its batch. All batches
/// have time of creation, and no producer.
///
/// Entries of other programs: without a `timestamp` in decimal digits the id's time counts. If `headers` is a JSON
/// object its members become headers, strings as text, null as null, anything else as the JSON it is written in. Any
/// other field, and a repeated one, becomes a header of its name. Raises `BAD_RESP` for anything that is not an array
/// of entries with rising ids (an error reply too), `OUT_OF_RANGE` for more than 62 `bits`, `UNKNOWN_COMPRESSION`, and
/// `OVERSIZE` for a batch beyond 2 GiB.
#[pyfunction]
pub(crate) fn decode_records(
    py: Python<'_>,
    reply: Input,
    bits: u32,
    start: i64,
    max_bytes: usize,
    compression: u8,
    leader_epoch: i32,
) -> PyResult<(Bound<'_, PyByteArray>, i64, usize, usize)> {
    let compression = Compression::from_bits(compression).or_raise(py)?;
    let data = reply.as_slice();
    let read =
        || korvet_codec::stream::decode_records(data, bits, start, max_bytes, compression, leader_epoch);
    let DecodedRecords { batches, next, seen, skipped } = run(py, data.len(), read).or_raise(py)?;
    Ok((PyByteArray::new(py, &batches), next, seen, skipped))
}

/// Decode a raw reply to XRANGE whose entries are whole batches: (views of the batches, next, seen, skipped).
///
/// Such an entry has the only field `batch`, with one version 2 batch, and the id of its base offset: with 0 `bits`
/// that is `<base offset>-1`. The result has the batches that do not end below `start`, at most `max_bytes` of them but
/// one at least, as views of `reply`. `next` and `seen` are those of `decode_records`; `skipped` counts the other
/// entries. Checksums are not verified. Raises `BAD_RESP` and `OUT_OF_RANGE` as `decode_records`.
#[pyfunction]
pub(crate) fn decode_batches<'py>(
    py: Python<'py>,
    reply: Lent<'py>,
    bits: u32,
    start: i64,
    max_bytes: usize,
) -> PyResult<(Vec<Bound<'py, PyMemoryView>>, i64, usize, usize)> {
    let found = korvet_codec::stream::decode_batches(reply.as_ref(), bits, start, max_bytes).or_raise(py)?;
    let DecodedBatches { places, next, seen, skipped } = found;
    let whole = reply.view()?;
    let views = places.into_iter().map(|place| cut(&whole, place)).collect::<PyResult<_>>()?;
    Ok((views, next, seen, skipped))
}
