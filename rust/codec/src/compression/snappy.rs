//! Snappy, raw (as librdkafka may send it) and in the framing of the Java library (as nearly everybody does).
//!
//! The framing (xerial): 8 bytes of magic, two 32-bit versions, then blocks of a 32-bit length and raw snappy.

use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};

use super::bounds::{corrupt, over};
use crate::Result;

const MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
/// Magic, version 1, lowest compatible version 1.
const FRAME_HEADER: &[u8; 16] = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
/// Plain bytes in a block, as the Java library cuts them.
const BLOCK: usize = 32 * 1024;

/// A byte of Snappy stands for this many at most: three bytes copy 64.
const RATIO: usize = 22;

/// Blocks of which some have come out.
pub(super) struct Blocks<'d> {
    rest: &'d [u8],
    framed: bool,
}

impl<'d> Blocks<'d> {
    /// `CORRUPT_COMPRESSION` for a framing that ends inside its header.
    pub(super) fn new(data: &'d [u8]) -> Result<Self> {
        let framed = data.starts_with(MAGIC);
        match data.get(if framed { FRAME_HEADER.len() } else { 0 }..) {
            Some(rest) => Ok(Self { rest, framed }),
            None => corrupt("snappy framing ends inside its header"),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Append whole blocks to `out` until it has `until` bytes, never more than `most`.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, until: usize, most: usize) -> Result<()> {
        while out.len() < until && !self.rest.is_empty() {
            if !self.framed {
                return block(std::mem::take(&mut self.rest), most, out);
            }
            let Some((size, after)) = self.rest.split_first_chunk() else {
                return corrupt("snappy framing ends inside a block length");
            };
            let size = u32::from_be_bytes(*size) as usize;
            let Some((compressed, after)) = after.split_at_checked(size).filter(|_| size > 0) else {
                return corrupt("a snappy block length is not possible");
            };
            block(compressed, most, out)?;
            self.rest = after;
        }
        Ok(())
    }
}

/// Append what one raw block stands for.
fn block(compressed: &[u8], most: usize, out: &mut Vec<u8>) -> Result<()> {
    let Ok(size) = decompress_len(compressed) else {
        return corrupt("broken snappy length");
    };
    let at = out.len();
    if size > most - at {
        return over();
    }
    // Before room is made for it.
    if size > compressed.len() * RATIO {
        return corrupt("a snappy block announces more than it can hold");
    }
    out.resize(at + size, 0);
    match Decoder::new().decompress(compressed, &mut out[at..]) {
        Ok(_) => Ok(()),
        Err(_) => corrupt("broken snappy"),
    }
}

pub(super) fn compress(data: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(FRAME_HEADER);
    let mut encoder = Encoder::new();
    for plain in data.chunks(BLOCK) {
        let at = out.len() + 4;
        out.resize(at + max_compress_len(plain.len()), 0);
        let size = encoder.compress(plain, &mut out[at..]).expect("room was made for the worst case");
        out.truncate(at + size);
        out[at - 4..at].copy_from_slice(&(size as u32).to_be_bytes());
    }
}
