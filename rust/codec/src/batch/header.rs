//! The 61 bytes in front of a batch's records.

use crate::{Code, Error, Result};

/// Bytes of a header, from the base offset to the record count.
pub const HEADER_SIZE: usize = 61;
/// Bytes before the point from which the length field counts.
const LENGTH_END: usize = 12;
/// The byte after which the format's version is known.
const MAGIC_END: usize = 17;
/// Where the bytes begin that the checksum covers.
pub(super) const CRC_END: usize = 21;
pub(super) const ATTRIBUTES_AT: usize = 21;

const COMPRESSION: i16 = 0b0111;
pub(super) const LOG_APPEND_TIME: i16 = 1 << 3;
pub(super) const TRANSACTIONAL: i16 = 1 << 4;
pub(super) const CONTROL: i16 = 1 << 5;

/// One batch's header, field by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the whole batch, this header included.
    pub size: usize,
    /// Offset of the first record.
    pub base_offset: i64,
    /// Epoch of the leader that stored the batch; -1 if none has.
    pub leader_epoch: i32,
    /// CRC-32C of everything after it.
    pub crc: u32,
    /// Flags; read them by the methods below.
    pub attributes: i16,
    /// Offset of the last record, less the base offset.
    pub last_offset_delta: i32,
    /// Time of the first record, in ms since 1970; the others are written as differences to it.
    pub first_timestamp: i64,
    /// The largest time in the batch, or the time of append.
    pub max_timestamp: i64,
    /// The idempotent producer, or -1.
    pub producer_id: i64,
    /// Its epoch, or -1.
    pub producer_epoch: i16,
    /// Its sequence number for the first record, or -1.
    pub base_sequence: i32,
    /// How many records follow.
    pub count: i32,
}

/// A batch's header, and where in the data it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Position of the batch's first byte.
    pub start: usize,
    /// The batch's header.
    pub header: Header,
}

impl Header {
    /// The header of the batch at the front of `data`, all of which must be there. Only what is needed to walk on is
    /// checked, in this order: `TRUNCATED` (less than 17 bytes), `BAD_MAGIC`, `BAD_LENGTH`, `TRUNCATED` (less than the
    /// length says), `BAD_OFFSET` (a last offset below the base offset, or beyond 64 bits).
    pub fn parse(data: &[u8]) -> Result<Self> {
        if data.len() < MAGIC_END {
            return Error::fail(Code::Truncated, "the input ends inside a batch header");
        }
        if data[MAGIC_END - 1] != 2 {
            return Error::fail(Code::BadMagic, "not a batch of version 2");
        }
        let length = i32::from_be_bytes(bytes(data, 8));
        if length < (HEADER_SIZE - LENGTH_END) as i32 {
            return Error::fail(Code::BadLength, "a batch length is smaller than the header");
        }
        let size = length as usize + LENGTH_END;
        let Some(head) = data.first_chunk::<HEADER_SIZE>().filter(|_| size <= data.len()) else {
            return Error::fail(Code::Truncated, "the input ends inside a batch");
        };
        let header = Self {
            size,
            base_offset: i64::from_be_bytes(bytes(head, 0)),
            leader_epoch: i32::from_be_bytes(bytes(head, 12)),
            crc: u32::from_be_bytes(bytes(head, 17)),
            attributes: i16::from_be_bytes(bytes(head, 21)),
            last_offset_delta: i32::from_be_bytes(bytes(head, 23)),
            first_timestamp: i64::from_be_bytes(bytes(head, 27)),
            max_timestamp: i64::from_be_bytes(bytes(head, 35)),
            producer_id: i64::from_be_bytes(bytes(head, 43)),
            producer_epoch: i16::from_be_bytes(bytes(head, 51)),
            base_sequence: i32::from_be_bytes(bytes(head, 53)),
            count: i32::from_be_bytes(bytes(head, 57)),
        };
        let reachable = header.base_offset.checked_add(i64::from(header.last_offset_delta)).is_some();
        if header.last_offset_delta < 0 || !reachable {
            return Error::fail(Code::BadOffset, "a batch's last offset is not possible");
        }
        Ok(header)
    }

    /// The header of `data`, which must be exactly one batch: as [`Header::parse`], and `TRAILING_BYTES`.
    pub fn parse_only(data: &[u8]) -> Result<Self> {
        let header = Self::parse(data)?;
        if header.size < data.len() {
            return Error::fail(Code::TrailingBytes, "bytes after the batch");
        }
        Ok(header)
    }

    /// Write this header over the front of `batch` and seal it: length and checksum are those of the bytes given.
    /// `OVERSIZE` for a batch beyond 2 GiB.
    ///
    /// # Panics
    /// If `batch` is shorter than a header: the caller made room.
    pub(super) fn seal(&self, batch: &mut [u8]) -> Result<()> {
        let Ok(length) = i32::try_from(batch.len() - LENGTH_END) else {
            return Error::fail(Code::Oversize, "a batch cannot be larger than 2 GiB");
        };
        put(batch, 0, self.base_offset.to_be_bytes());
        put(batch, 8, length.to_be_bytes());
        put(batch, 12, self.leader_epoch.to_be_bytes());
        put(batch, 16, [2]);
        put(batch, 21, self.attributes.to_be_bytes());
        put(batch, 23, self.last_offset_delta.to_be_bytes());
        put(batch, 27, self.first_timestamp.to_be_bytes());
        put(batch, 35, self.max_timestamp.to_be_bytes());
        put(batch, 43, self.producer_id.to_be_bytes());
        put(batch, 51, self.producer_epoch.to_be_bytes());
        put(batch, 53, self.base_sequence.to_be_bytes());
        put(batch, 57, self.count.to_be_bytes());
        put(batch, 17, checksum(batch).to_be_bytes());
        Ok(())
    }

    /// Offset of the last record.
    #[must_use]
    pub const fn last_offset(&self) -> i64 {
        self.base_offset + self.last_offset_delta as i64
    }

    /// 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 mean nothing.
    #[must_use]
    pub const fn compression(&self) -> u8 {
        (self.attributes & COMPRESSION) as u8
    }

    /// All records have the time of append, `max_timestamp`, and not their own.
    #[must_use]
    pub const fn log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    /// The batch is part of a transaction.
    #[must_use]
    pub const fn transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// The batch holds a broker's markers, not a producer's records.
    #[must_use]
    pub const fn control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// The time of a record, in ms since 1970: its own, or that of append. `BAD_RECORD` if it does not fit.
    #[inline]
    pub(super) fn timestamp_of(&self, delta: i64) -> Result<i64> {
        if self.log_append_time() {
            return Ok(self.max_timestamp);
        }
        let time = self.first_timestamp.checked_add(delta);
        time.ok_or_else(|| Error::new(Code::BadRecord, "a record's time does not fit 64 bits"))
    }

    /// The offset of a record. `BAD_OFFSET` if it does not fit.
    #[inline]
    pub(crate) fn offset_of(&self, delta: i32) -> Result<i64> {
        let offset = self.base_offset.checked_add(i64::from(delta));
        offset.ok_or_else(|| Error::new(Code::BadOffset, "a record's offset does not fit 64 bits"))
    }

    /// The attributes with another compression.
    pub(super) const fn attributes_with(&self, compression: u8) -> i16 {
        self.attributes & !COMPRESSION | compression as i16
    }
}

/// The CRC-32C that the batch should carry. `batch` is whole.
#[inline]
pub(super) fn checksum(batch: &[u8]) -> u32 {
    crc32c::crc32c(&batch[CRC_END..])
}

/// `N` bytes of `data` at a place known to be inside it.
#[inline]
fn bytes<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&data[at..at + N]);
    out
}

#[inline]
pub(super) fn put<const N: usize>(batch: &mut [u8], at: usize, field: [u8; N]) {
    batch[at..at + N].copy_from_slice(&field);
}
