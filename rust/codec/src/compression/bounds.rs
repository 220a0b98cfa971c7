//! How much is decompressed at once, and how decompressing fails.

use crate::{Code, Error, Result};

/// Decompressed bytes of a piece that callers take at a time; see [`Unpack`].
pub const PIECE: usize = 1 << 20;

#[cold]
pub(super) fn over<T>() -> Result<T> {
    Error::fail(Code::DecompressionLimit, "decompressing would give more bytes than allowed")
}

#[cold]
pub(super) fn corrupt<T>(what: &'static str) -> Result<T> {
    Error::fail(Code::CorruptCompression, what)
}
