//! A new batch, record after record.

use super::header::{HEADER_SIZE, Header, TRANSACTIONAL};
use super::rewrite::assign_offsets;
use crate::compression::{Compression, compress};
use crate::varint::{size_i32, size_i64, write_i32, write_i64};
use crate::{Code, Error, Result};

/// Who made a batch, as its header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The idempotent producer, or -1.
    pub producer_id: i64,
    /// Its epoch, or -1.
    pub producer_epoch: i16,
    /// Its sequence number for the first record, or -1.
    pub base_sequence: i32,
    /// Whether the records are part of a transaction of the producer (KIP-98).
    pub transactional: bool,
}

impl Origin {
    /// Nobody in particular.
    pub const NONE: Self =
        Self { producer_id: -1, producer_epoch: -1, base_sequence: -1, transactional: false };
}

/// The headers of a record without any.
pub(crate) const NO_HEADERS: &[(&[u8], Option<&[u8]>)] = &[];

/// A batch under construction: room for its header, then the records so far.
pub(crate) struct Builder {
    out: Vec<u8>,
    count: i32,
    last_offset_delta: i32,
    first_timestamp: i64,
    max_timestamp: i64,
}

impl Builder {
    /// An empty batch; `room` is a guess at the bytes of its records.
    pub(crate) fn new(room: usize) -> Self {
        Self::within(Vec::new(), room)
    }

    /// An empty batch in memory that is there already, and holds nothing that is needed.
    pub(crate) fn within(mut out: Vec<u8>, room: usize) -> Self {
        out.clear();
        out.reserve(HEADER_SIZE + room);
        out.resize(HEADER_SIZE, 0);
        Self { out, count: 0, last_offset_delta: -1, first_timestamp: 0, max_timestamp: i64::MIN }
    }

    /// Append a record. `timestamp` in ms; offset deltas rise. `OVERSIZE` for a record beyond 2 GiB, `OUT_OF_RANGE` for
    /// a time that is 2^63 ms or more from the first record's.
    pub(crate) fn push<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        offset_delta: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(K, Option<V>)],
    ) -> Result<()> {
        let Some(timestamp_delta) = self.time_delta(timestamp) else {
            return Error::fail(Code::OutOfRange, "the times of a batch are too far apart");
        };
        let size = record_size(offset_delta, timestamp_delta, key, value, headers)?;
        self.push_sized(size, offset_delta, timestamp, key, value, headers);
        Ok(())
    }

    /// As [`push`](Self::push), for a record whose size is known: what [`record_size`] gave.
    pub(crate) fn push_sized<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        size: i32,
        offset_delta: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(K, Option<V>)],
    ) {
        // `record_size` found all of this to fit.
        let timestamp_delta = self.time_delta(timestamp).unwrap_or_default();
        if self.count == 0 {
            self.first_timestamp = timestamp;
        }

        let out = &mut self.out;
        write_i32(out, size);
        out.push(0);
        write_i64(out, timestamp_delta);
        write_i32(out, offset_delta);
        put(out, key);
        put(out, value);
        write_i32(out, headers.len() as i32);
        for (key, value) in headers {
            put(out, Some(key.as_ref()));
            put(out, value.as_ref().map(AsRef::as_ref));
        }
        self.count += 1;
        self.last_offset_delta = offset_delta;
        self.max_timestamp = self.max_timestamp.max(timestamp);
    }

    /// Bytes so far, with the room for the header.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// How many records there are.
    pub(crate) fn count(&self) -> i32 {
        self.count
    }

    /// How far a time is from the first record's; None if that does not fit. 0 if this is the first.
    pub(crate) fn time_delta(&self, timestamp: i64) -> Option<i64> {
        if self.count == 0 { Some(0) } else { timestamp.checked_sub(self.first_timestamp) }
    }

    /// The batch, compressed and sealed. `BAD_COUNT` without records, `BAD_OFFSET` if the last offset does not fit,
    /// `OVERSIZE` beyond 2 GiB.
    pub(crate) fn finish(
        self,
        compression: Compression,
        base_offset: i64,
        leader_epoch: i32,
        origin: Origin,
    ) -> Result<Vec<u8>> {
        if self.count == 0 {
            return Error::fail(Code::BadCount, "a batch needs a record");
        }
        if base_offset.checked_add(i64::from(self.last_offset_delta)).is_none() {
            return Error::fail(Code::BadOffset, "the batch's last offset does not fit 64 bits");
        }
        let mut out = self.out;
        if compression != Compression::None {
            let mut compressed = vec![0; HEADER_SIZE];
            compress(compression, &out[HEADER_SIZE..], &mut compressed);
            out = compressed;
        }
        let header = Header {
            size: out.len(),
            base_offset,
            leader_epoch,
            crc: 0,
            attributes: i16::from(compression.bits()) | if origin.transactional { TRANSACTIONAL } else { 0 },
            last_offset_delta: self.last_offset_delta,
            first_timestamp: self.first_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: origin.producer_id,
            producer_epoch: origin.producer_epoch,
            base_sequence: origin.base_sequence,
            count: self.count,
        };
        header.seal(&mut out)?;
        Ok(out)
    }

    /// The batch, not compressed, which takes `span` offsets, more than it has records. `stamp`: the leader epoch and the
    /// time of append, if it has been appended. Errors as [`finish`](Self::finish).
    pub(crate) fn finish_spanning(
        mut self,
        base_offset: i64,
        span: i64,
        origin: Origin,
        stamp: Option<(i32, i64)>,
    ) -> Result<Vec<u8>> {
        let Ok(last) = i32::try_from(span - 1) else {
            return Error::fail(Code::Oversize, "a batch cannot take more than 2^31 offsets");
        };
        self.last_offset_delta = last;
        let mut out =
            self.finish(Compression::None, base_offset, stamp.map_or(-1, |(epoch, _)| epoch), origin)?;
        if let Some((epoch, time)) = stamp {
            assign_offsets(&mut out, base_offset, epoch, None, Some(time))?;
        }
        Ok(out)
    }
}

/// Bytes of a record, those of its length in front not counted. `OVERSIZE` beyond 2 GiB.
pub(crate) fn record_size<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    offset_delta: i32,
    timestamp_delta: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[(K, Option<V>)],
) -> Result<i32> {
    let many = length(headers.len())?;
    let mut size = 1 + size_i64(timestamp_delta) + size_i32(offset_delta) + size_i32(many);
    size += room(key)? + room(value)?;
    for (key, value) in headers {
        size += room(Some(key.as_ref()))? + room(value.as_ref().map(AsRef::as_ref))?;
    }
    length(size)
}

/// As a length on the wire.
#[inline]
fn length(size: usize) -> Result<i32> {
    i32::try_from(size).map_err(|_| Error::new(Code::Oversize, "a record cannot be larger than 2 GiB"))
}

/// Bytes that [`put`] writes.
#[inline]
fn room(bytes: Option<&[u8]>) -> Result<usize> {
    Ok(match bytes {
        None => 1,
        Some(bytes) => size_i32(length(bytes.len())?) + bytes.len(),
    })
}

/// Append bytes behind their length, null as length -1.
#[inline]
fn put(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => write_i32(out, -1),
        Some(bytes) => {
            write_i32(out, bytes.len() as i32);
            out.extend_from_slice(bytes);
        }
    }
}
