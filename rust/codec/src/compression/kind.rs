//! The compressions there are.

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
