//! Zstandard, each frame in one go: it may announce a window of 128 MiB, and decompressing as a stream would reserve it.

use std::cell::RefCell;

use zstd::zstd_safe::{
    CCtx, DCtx, compress_bound, decompress_bound, find_frame_compressed_size, get_error_name,
    get_frame_content_size,
};

use super::{corrupt, over};
use crate::Result;

/// The level of Kafka's clients.
const LEVEL: i32 = 3;
/// What zstd calls running out of room.
const NO_ROOM: &str = "Destination buffer is too small";

thread_local! {
    // Making one takes 20 us, ten times as long as a small batch.
    static DECOMPRESSION: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    static COMPRESSION: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
}

/// Frame by frame: one that announces too much is over the limit, and one that gives more than it may is corrupt.
pub(super) fn decompress(mut data: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    while !data.is_empty() {
        let left = most - out.len();
        match get_frame_content_size(data) {
            Err(_) => return corrupt("not a zstd frame"),
            Ok(Some(size)) if size > left as u64 => return over(),
            Ok(_) => (),
        }
        let Ok(size) = find_frame_compressed_size(data) else {
            return corrupt("a zstd frame without an end");
        };
        let (frame, rest) = data.split_at(size);
        let plain = decompress_frame(frame, left)?;
        if out.is_empty() {
            out = plain;
        } else {
            out.extend_from_slice(&plain);
        }
        data = rest;
    }
    Ok(out)
}

fn decompress_frame(frame: &[u8], left: usize) -> Result<Vec<u8>> {
    // What the frame announces; if it does not, what its blocks can hold. Not reserved beyond what is allowed.
    let Ok(largest) = decompress_bound(frame) else {
        return corrupt("broken zstd blocks");
    };
    let mut out = Vec::with_capacity(left.min(usize::try_from(largest).unwrap_or(usize::MAX)));
    match DECOMPRESSION.with_borrow_mut(|context| context.decompress(&mut out, frame)) {
        Ok(_) => Ok(out),
        Err(code) if largest > left as u64 && get_error_name(code) == NO_ROOM => over(),
        Err(_) => corrupt("broken zstd"),
    }
}

pub(super) fn compress(data: &[u8], out: &mut Vec<u8>) {
    let mut compressed = Vec::with_capacity(compress_bound(data.len()));
    let result = COMPRESSION.with_borrow_mut(|context| context.compress(&mut compressed, data, LEVEL));
    result.expect("room was made for the worst case");
    out.extend_from_slice(&compressed);
}
