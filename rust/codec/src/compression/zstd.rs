//! Zstandard, in one go: a frame may announce a window of 128 MiB, and decompressing as a stream would reserve it.

use std::cell::RefCell;

use zstd::zstd_safe::{CCtx, DCtx, compress_bound, get_error_name, get_frame_content_size};

use super::{corrupt, over};
use crate::Result;

/// The level of Kafka's clients.
const LEVEL: i32 = 3;
/// What zstd calls running out of room, the one failure that more room can cure.
const NO_ROOM: &str = "Destination buffer is too small";
/// Room tried first where a frame does not say its size.
const FIRST_ROOM: usize = 64 * 1024;

thread_local! {
    // Making one takes 20 us, ten times as long as a small batch.
    static DECOMPRESSION: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    static COMPRESSION: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
}

pub(super) fn decompress(data: &[u8], most: usize) -> Result<Vec<u8>> {
    let Ok(announced) = get_frame_content_size(data) else {
        return corrupt("not a zstd frame");
    };
    let mut room = match announced {
        Some(size) if size > most as u64 => return over(),
        Some(size) => size as usize,
        None => most.min(FIRST_ROOM.max(data.len().saturating_mul(4))),
    };
    loop {
        let mut out = Vec::with_capacity(room);
        match DECOMPRESSION.with_borrow_mut(|context| context.decompress(&mut out, data)) {
            Ok(_) => return Ok(out),
            Err(code) if get_error_name(code) != NO_ROOM => return corrupt("broken zstd"),
            Err(_) if room >= most => return over(),
            Err(_) => room = most.min(room.saturating_mul(4).max(FIRST_ROOM)),
        }
    }
}

pub(super) fn compress(data: &[u8], out: &mut Vec<u8>) {
    let mut compressed = Vec::with_capacity(compress_bound(data.len()));
    let result = COMPRESSION.with_borrow_mut(|context| context.compress(&mut compressed, data, LEVEL));
    result.expect("room was made for the worst case");
    out.extend_from_slice(&compressed);
}
