//! The four compressions of record batches and message sets, bounded in what they give.
//!
//! A megabyte of zeros fits in a few dozen bytes of zstd, so the bound is enforced *while* decompressing, and no room is
//! made for what is only announced. All of the input must be used; empty input is corrupt.

mod bounds;
mod gzip;
mod kind;
mod lz4;
mod snappy;
mod unpack;
mod zstd;

pub use bounds::PIECE;
pub use kind::Compression;
pub use unpack::Unpack;

use crate::Result;

/// `data` decompressed, at most `limit` bytes. `DECOMPRESSION_LIMIT`, `CORRUPT_COMPRESSION`.
pub fn decompress(compression: Compression, data: &[u8], limit: usize) -> Result<Vec<u8>> {
    Unpack::new(compression, data, limit, PIECE)?.all()
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

#[cfg(test)]
mod tests;
