//! Decompression piece by piece, so that what a batch expands to never lies in memory as a whole.

use super::bounds::{corrupt, over};
use super::kind::Compression;
use super::{gzip, lz4, snappy, zstd};
use crate::Result;

/// Decompressed bytes that come out in pieces of `step` bytes. Blocks of Snappy and LZ4 and small frames of zstd come as
/// a whole, so a piece may be larger by one of these: at most 22 times the compressed size, 4 MiB, and `step`.
///
/// Beside a piece the window of a zstd frame is held: at most 8 MiB, and once in the process at most 128 MiB.
pub struct Unpack<'d> {
    source: Source<'d>,
    /// The bytes that later blocks may still copy from, then the piece.
    out: Vec<u8>,
    from: usize,
    step: usize,
    /// Bytes that may still come.
    left: usize,
}

enum Source<'d> {
    Plain(&'d [u8]),
    Gzip(gzip::Members<'d>),
    Snappy(snappy::Blocks<'d>),
    Lz4(lz4::Frames<'d>),
    Zstd(zstd::Frames<'d>),
}

impl<'d> Unpack<'d> {
    /// Nothing has come out yet. `limit`: decompressed bytes in all; `step` is 1 at least. `CORRUPT_COMPRESSION` for no bytes at all.
    pub fn new(compression: Compression, data: &'d [u8], limit: usize, step: usize) -> Result<Self> {
        if data.is_empty() && compression != Compression::None {
            return corrupt("no compressed bytes at all");
        }
        let step = step.max(1);
        let source = match compression {
            Compression::None => Source::Plain(data),
            Compression::Gzip => Source::Gzip(gzip::Members::new(data)),
            Compression::Snappy => Source::Snappy(snappy::Blocks::new(data)?),
            Compression::Lz4 => Source::Lz4(lz4::Frames::new(data)),
            Compression::Zstd => Source::Zstd(zstd::Frames::new(data, step)),
        };
        Ok(Self { source, out: Vec::new(), from: 0, step, left: limit })
    }

    /// The next piece, in place of the one before; empty if all has come. `DECOMPRESSION_LIMIT`, `CORRUPT_COMPRESSION`.
    pub fn advance(&mut self) -> Result<&[u8]> {
        let keep = if matches!(self.source, Source::Lz4(_)) { lz4::WINDOW.min(self.out.len()) } else { 0 };
        self.out.drain(..self.out.len() - keep);
        self.from = keep;
        self.fill(keep.saturating_add(self.step))?;
        Ok(self.piece())
    }

    /// The piece that came last.
    #[must_use]
    pub fn piece(&self) -> &[u8] {
        &self.out[self.from..]
    }

    /// Whether nothing can come any more. False may turn out to be the end.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.source {
            Source::Plain(rest) => rest.is_empty(),
            Source::Gzip(members) => members.is_done(),
            Source::Snappy(blocks) => blocks.is_done(),
            Source::Lz4(frames) => frames.is_done(),
            Source::Zstd(frames) => frames.is_done(),
        }
    }

    /// Bytes that may still come, by the limit.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left
    }

    /// All that has not come yet, at once.
    pub(super) fn all(mut self) -> Result<Vec<u8>> {
        self.fill(usize::MAX)?;
        Ok(self.out)
    }

    /// Append to `out` until it has `until` bytes, or all has come.
    fn fill(&mut self, until: usize) -> Result<()> {
        let most = self.from.saturating_add(self.left);
        match &mut self.source {
            Source::Plain(rest) => {
                let (now, later) = rest.split_at(rest.len().min(until - self.out.len()));
                if now.len() > self.left {
                    return over();
                }
                self.out.extend_from_slice(now);
                *rest = later;
            }
            Source::Gzip(members) => members.fill(&mut self.out, until, most)?,
            Source::Snappy(blocks) => blocks.fill(&mut self.out, until, most)?,
            Source::Lz4(frames) => frames.fill(&mut self.out, until, most)?,
            Source::Zstd(frames) => frames.fill(&mut self.out, until, most)?,
        }
        self.left = most - self.out.len();
        Ok(())
    }
}
