//! The four compressions of record batches and message sets, bounded in what they give.
//!
//! A megabyte of zeros fits in a few dozen bytes of zstd, so the bound is enforced *while* decompressing. All of the
//! input must be used; empty input is corrupt.

mod gzip;
mod lz4;
mod snappy;
mod zstd;

use crate::{Code, Error, Result};

/// How a batch's records are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None = 0,
    /// One or several gzip members.
    Gzip = 1,
    /// Raw snappy, or blocks of it in the framing of the Java library (xerial).
    Snappy = 2,
    /// LZ4 frames.
    Lz4 = 3,
    /// Zstandard frames.
    Zstd = 4,
}

impl Compression {
    /// All of them, by their number.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// By its number on the wire. `UNKNOWN_COMPRESSION`.
    pub fn from_bits(bits: u8) -> Result<Self> {
        Self::ALL
            .get(usize::from(bits))
            .copied()
            .ok_or_else(|| Error::new(Code::UnknownCompression, "no compression has this number"))
    }

    /// Its number on the wire.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }
}

/// The most bytes that `size` compressed bytes may become under `limit`.
#[must_use]
pub const fn bound(size: usize, limit: usize) -> usize {
    let fair = size.saturating_mul(64).saturating_add(1 << 20);
    if fair < limit { fair } else { limit }
}

/// What `data` stands for: at most `limit` bytes, nor more than 64 times its size and 1 MiB.
/// `DECOMPRESSION_LIMIT`, `CORRUPT_COMPRESSION`.
pub fn decompress(compression: Compression, data: &[u8], limit: usize) -> Result<Vec<u8>> {
    run(compression, data, limit, lz4::Checksum::Right)
}

/// As [`decompress`], and also takes LZ4 frames whose header checksum covers the magic number too, as Kafka wrote it
/// before 0.10 into message sets.
pub fn decompress_old(compression: Compression, data: &[u8], limit: usize) -> Result<Vec<u8>> {
    run(compression, data, limit, lz4::Checksum::RightOrOld)
}

fn run(compression: Compression, data: &[u8], limit: usize, checksum: lz4::Checksum) -> Result<Vec<u8>> {
    let most = bound(data.len(), limit);
    if compression == Compression::None {
        return if data.len() <= most { Ok(data.to_vec()) } else { over() };
    }
    if data.is_empty() {
        return corrupt("no compressed bytes at all");
    }
    match compression {
        Compression::Gzip => gzip::decompress(data, most),
        Compression::Snappy => snappy::decompress(data, most),
        Compression::Lz4 => lz4::decompress(data, most, checksum),
        _ => zstd::decompress(data, most),
    }
}

/// Append `data` to `out` as Kafka's own clients would write it.
pub fn compress(compression: Compression, data: &[u8], out: &mut Vec<u8>) {
    match compression {
        Compression::None => out.extend_from_slice(data),
        Compression::Gzip => gzip::compress(data, out),
        Compression::Snappy => snappy::compress(data, out),
        Compression::Lz4 => lz4::compress(data, out),
        Compression::Zstd => zstd::compress(data, out),
    }
}

#[cold]
fn over<T>() -> Result<T> {
    Error::fail(Code::DecompressionLimit, "decompressing would give more bytes than allowed")
}

#[cold]
fn corrupt<T>(what: &'static str) -> Result<T> {
    Error::fail(Code::CorruptCompression, what)
}

#[cfg(test)]
mod tests;
