//! Batches into Redis streams and back.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use korvet_codec::compression::Compression;
use korvet_codec::resp::words;
use korvet_codec::stream::{Append, Blobs, Head, Page};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

use crate::batch::run;
use crate::buffer::{Input, Lent, cut};
use crate::commands::Argument;
use crate::error::OrRaise;

/// One version 2 batch as Redis commands that append its records to a stream, `XADD key id field value …` for each.
///
/// The ids are those of the offsets `base`, `base` + 1 and so on (see `pack_ids`). Fields: `key` and `value` (absent:
/// null), `timestamp` (ms; of a batch with time of append that time), `header.NAME` for each header in order, and for one
/// whose value is null `null.header.NAME` with an empty value. `first`: words that stand in front of the first record's
/// id in place of `XADD key`, as of a script that does what must go before. `limit` bounds the decompressed bytes.
///
/// Raises `TRUNCATED`, `BAD_MAGIC`, `BAD_LENGTH`, `BAD_OFFSET`, `TRAILING_BYTES` if this is not exactly one batch;
/// `BAD_ATTRIBUTES` (a control batch), `BAD_COUNT` (no records), `OUT_OF_RANGE` (`base` below 1, as no id is 0-0; offsets
/// beyond 63 bits; more than 62 `bits`), the codes of decompression, and for each record `BAD_RECORD`, `BAD_OFFSET` (not
/// the next offset), `TOO_MANY_ELEMENTS` (more than 3,500 headers, too many arguments for a script).
#[pyfunction]
#[pyo3(signature = (key, batch, base, bits, limit, first = None))]
pub(crate) fn pack_append<'py>(
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
    let append = run(py, data.len(), || Append::new(data, base, bits, limit, each, first)).or_raise(py)?;
    PyBytes::new_with(py, append.size(), |out| {
        run(py, out.len(), || append.write(out));
        Ok(())
    })
}

/// A raw reply to XRANGE as (version 2 batches one behind the other, next, seen, skipped): the records from `start` on.
///
/// `next`: where a read goes on, the offset behind the last entry seen, never below `start`. `seen`: entries used up;
/// fewer than there are only if the rest would go beyond `max_bytes`, which bounds the batches before compression, though
/// not the first record. `skipped`: those of them whose ids are no offsets, because the sequence has more than `bits` bits
/// or the time too many; they cannot be told to a consumer, and `next` goes past them. A new batch begins where an
/// offset is 2^31 or a time 2^63 ms away from the first in its batch. All have time of creation, and no producer.
///
/// Entries of other programs: without a `timestamp` in decimal digits the id's time counts. If `headers` is a JSON object
/// its members become headers, strings as text, null as null, anything else as the JSON it is written in. Any other
/// field, and a repeated one, becomes a header of its name. Raises `BAD_RESP` for anything that is not an array of entries
/// with rising ids (an error reply too), `OUT_OF_RANGE` for more than 62 `bits`, `UNKNOWN_COMPRESSION`, and `OVERSIZE` for a
/// batch beyond 2 GiB.
#[pyfunction]
pub(crate) fn entries(
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
    let read = || korvet_codec::stream::entries(data, bits, start, max_bytes, compression, leader_epoch);
    let Page { batches, next, seen, skipped } = run(py, data.len(), read).or_raise(py)?;
    Ok((PyByteArray::new(py, &batches), next, seen, skipped))
}

/// A raw reply to XRANGE over entries that are whole batches, as (views of the batches, next, seen, skipped).
///
/// Such an entry has the only field `batch`, with one version 2 batch, and the id of its base offset. Given are those that
/// do not end below `start`, at most `max_bytes` of them but one at least, as views of `reply`. `next` and `seen` as in
/// `entries`; `skipped`: entries that are something else. Checksums are not looked at. Raises `BAD_RESP` and `OUT_OF_RANGE`
/// as `entries`.
#[pyfunction]
pub(crate) fn blobs<'py>(
    py: Python<'py>,
    reply: Lent<'py>,
    bits: u32,
    start: i64,
    max_bytes: usize,
) -> PyResult<(Vec<Bound<'py, PyMemoryView>>, i64, usize, usize)> {
    let found = korvet_codec::stream::blobs(reply.as_ref(), bits, start, max_bytes).or_raise(py)?;
    let Blobs { places, next, seen, skipped } = found;
    let whole = reply.view()?;
    let views = places.into_iter().map(|place| cut(&whole, place)).collect::<PyResult<_>>()?;
    Ok((views, next, seen, skipped))
}
