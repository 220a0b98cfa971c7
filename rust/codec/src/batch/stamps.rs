//! The times and offsets of a batch's records, of which no more lies in memory than a piece of it.

use std::ops::ControlFlow;

use super::header::{HEADER_SIZE, Header};
use super::records::{Record, Records, broken, bytes_left, record};
use crate::compression::{Compression, PIECE, Unpack};
use crate::{Code, Error, Result, varint};

/// A record's time and offset, as differences to what the batch's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
}

impl From<Record<'_>> for Stamp {
    #[inline]
    fn from(record: Record<'_>) -> Self {
        Self { timestamp_delta: record.timestamp_delta, offset_delta: record.offset_delta }
    }
}

/// Show `see` the stamps of `batch`'s records (one whole batch), every one of which is verified to be whole, until it
/// breaks off. What follows then is not decompressed, but for the rest of a piece.
///
/// `limit`: decompressed bytes; what they were is taken off it. An error of decompression anywhere in the batch wins
/// over any other. `UNKNOWN_COMPRESSION`, `CORRUPT_COMPRESSION`, `DECOMPRESSION_LIMIT`, `BAD_COUNT`, `BAD_RECORD`, and
/// what `see` raises.
#[inline]
pub(super) fn each_stamp(
    header: &Header,
    batch: &[u8],
    limit: &mut usize,
    see: impl FnMut(Stamp) -> Result<ControlFlow<()>>,
) -> Result<()> {
    each_stamp_by(header, batch, limit, PIECE, see)
}

#[inline]
pub(super) fn each_stamp_by(
    header: &Header,
    batch: &[u8],
    limit: &mut usize,
    step: usize,
    mut see: impl FnMut(Stamp) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let records = &batch[HEADER_SIZE..header.size];
    let compression = Compression::from_bits(header.compression())?;
    if compression == Compression::None {
        return in_memory(header, records, see);
    }
    let mut unpack = Unpack::new(compression, records, *limit, step)?;
    unpack.advance()?;
    let seen = if unpack.is_done() {
        in_memory(header, unpack.piece(), see)
    } else {
        let mut flow = Flow { unpack, at: 0 };
        let seen = flow.each(header, &mut see);
        unpack = flow.unpack;
        if seen.as_ref().is_err_and(|error| !error.code.is_of_compression()) {
            while !unpack.advance()?.is_empty() {}
        }
        seen
    };
    *limit = unpack.left();
    seen
}

#[inline]
fn in_memory(
    header: &Header,
    payload: &[u8],
    mut see: impl FnMut(Stamp) -> Result<ControlFlow<()>>,
) -> Result<()> {
    for record in Records::new(header, payload)? {
        if see(record?.into())?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Records that come out piece by piece. What is in one piece is read there; a record that goes on in the next is read
/// field by field, and the bytes of its keys and values are passed over.
struct Flow<'d> {
    unpack: Unpack<'d>,
    /// Position in the piece.
    at: usize,
}

impl Flow<'_> {
    fn each(
        &mut self,
        header: &Header,
        see: &mut impl FnMut(Stamp) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if header.count < 0 {
            return Error::fail(Code::BadCount, "a batch's record count is negative");
        }
        for _ in 0..header.count {
            let stamp = match self.in_piece() {
                Some(stamp) => stamp,
                None => self.across_pieces()?,
            };
            if see(stamp)?.is_break() {
                return Ok(());
            }
        }
        if self.has_more()? { bytes_left() } else { Ok(()) }
    }

    /// The next record, if the piece has all of it and it is sound.
    #[inline]
    fn in_piece(&mut self) -> Option<Stamp> {
        let piece = self.unpack.piece();
        let mut rest = &piece[self.at..];
        let stamp = record(&mut rest).ok()?.into();
        self.at = piece.len() - rest.len();
        Some(stamp)
    }

    #[cold]
    fn across_pieces(&mut self) -> Result<Stamp> {
        let mut unbounded = usize::MAX;
        let size = self.int(&mut unbounded)?;
        let Ok(mut left) = usize::try_from(size) else { return broken() };
        self.pass(1, &mut left)?;
        let timestamp_delta = self.varint(&mut left, varint::read_i64)?;
        let offset_delta = self.int(&mut left)?;
        self.pass_nullable(&mut left)?;
        self.pass_nullable(&mut left)?;
        let headers = self.int(&mut left)?;
        if usize::try_from(headers).ok().is_none_or(|headers| headers > left) {
            return broken();
        }
        for _ in 0..headers {
            let key = self.int(&mut left)?;
            self.pass(key, &mut left)?;
            self.pass_nullable(&mut left)?;
        }
        if left == 0 { Ok(Stamp { timestamp_delta, offset_delta }) } else { broken() }
    }

    /// Whether a byte stands at `at`, be it of the next piece.
    fn has_more(&mut self) -> Result<bool> {
        if self.at < self.unpack.piece().len() {
            return Ok(true);
        }
        self.at = 0;
        Ok(!self.unpack.advance()?.is_empty())
    }

    fn int(&mut self, left: &mut usize) -> Result<i32> {
        self.varint(left, varint::read_i32)
    }

    /// An integer of at most `left` bytes, which are taken off it.
    #[inline]
    fn varint<T>(&mut self, left: &mut usize, read: impl Fn(&[u8]) -> Result<(T, usize)>) -> Result<T> {
        let most = varint::MAX_64.min(*left);
        let ahead = &self.unpack.piece()[self.at..];
        if ahead.len() >= most {
            let Ok((value, size)) = read(&ahead[..most]) else { return broken() };
            self.at += size;
            *left -= size;
            return Ok(value);
        }
        let (mut bytes, mut size) = ([0; varint::MAX_64], 0);
        while size < most && self.has_more()? {
            bytes[size] = self.unpack.piece()[self.at];
            self.at += 1;
            size += 1;
            if bytes[size - 1] < 0x80 {
                break;
            }
        }
        *left -= size;
        read(&bytes[..size]).map(|(value, _)| value).or_else(|_| broken())
    }

    /// Pass over `size` bytes, of `left` at most.
    #[inline]
    fn pass(&mut self, size: i32, left: &mut usize) -> Result<()> {
        let Some(mut size) = usize::try_from(size).ok().filter(|size| size <= left) else { return broken() };
        *left -= size;
        while size > 0 {
            if !self.has_more()? {
                return broken();
            }
            let now = size.min(self.unpack.piece().len() - self.at);
            self.at += now;
            size -= now;
        }
        Ok(())
    }

    /// Pass over bytes behind their length, where -1 stands for null.
    #[inline]
    fn pass_nullable(&mut self, left: &mut usize) -> Result<()> {
        match self.int(left)? {
            -1 => Ok(()),
            size => self.pass(size, left),
        }
    }
}
