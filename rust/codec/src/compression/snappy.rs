//! Snappy, raw (as librdkafka may send it) and in the framing of the Java library (as nearly everybody does).
//!
//! The framing (xerial): 8 bytes of magic, two 32-bit versions, then blocks of a 32-bit length and raw snappy.

use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};

use super::{corrupt, over};
use crate::Result;

const MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
/// Magic, version 1, lowest compatible version 1.
const FRAME_HEADER: &[u8; 16] = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
/// Plain bytes in a block, as the Java library cuts them.
const BLOCK: usize = 32 * 1024;

pub(super) fn decompress(data: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    if !data.starts_with(MAGIC) {
        block(data, most, &mut out)?;
        return Ok(out);
    }
    let Some(mut rest) = data.get(FRAME_HEADER.len()..) else {
        return corrupt("snappy framing ends inside its header");
    };
    while !rest.is_empty() {
        let Some((size, after)) = rest.split_first_chunk() else {
            return corrupt("snappy framing ends inside a block length");
        };
        let size = u32::from_be_bytes(*size) as usize;
        let Some((compressed, after)) = after.split_at_checked(size).filter(|_| size > 0) else {
            return corrupt("a snappy block length is not possible");
        };
        block(compressed, most, &mut out)?;
        rest = after;
    }
    Ok(out)
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
