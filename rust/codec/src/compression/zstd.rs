//! Zstandard, each frame in one go: it may announce a window of 128 MiB, and decompressing as a stream would reserve it.

use std::cell::RefCell;

use zstd::zstd_safe::{CCtx, DCtx, compress_bound, find_frame_compressed_size, get_error_name, get_frame_content_size};

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

pub(super) fn decompress(mut data: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    while !data.is_empty() {
        // A frame without an end is broken: decompressing all that is left says where, unless it is over before.
        let size = find_frame_compressed_size(data).unwrap_or(data.len());
        let (frame, rest) = data.split_at(size);
        let plain = decompress_frame(frame, most - out.len())?;
        if out.is_empty() {
            out = plain;
        } else {
            out.extend_from_slice(&plain);
        }
        data = rest;
    }
    Ok(out)
}

fn decompress_frame(frame: &[u8], most: usize) -> Result<Vec<u8>> {
    match get_frame_content_size(frame) {
        Err(_) => corrupt("not a zstd frame"),
        Ok(Some(size)) if size > most as u64 => over(),
        // Whatever goes wrong now, too little room included: the frame is not what it says.
        Ok(Some(size)) => into_room(frame, size as usize).or_else(|_| corrupt("broken zstd")),
        Ok(None) => decompress_unsized(frame, most),
    }
}

/// A frame that does not say its size, as clients that compress as they go write it.
fn decompress_unsized(frame: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut room = most.min(FIRST_ROOM.max(frame.len().saturating_mul(4)));
    loop {
        match into_room(frame, room) {
            Ok(out) => return Ok(out),
            Err(code) if get_error_name(code) != NO_ROOM => return corrupt("broken zstd"),
            Err(_) if room >= most => return over(),
            Err(_) => room = most.min(room.saturating_mul(4)),
        }
    }
}

fn into_room(frame: &[u8], room: usize) -> std::result::Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(room);
    DECOMPRESSION.with_borrow_mut(|context| context.decompress(&mut out, frame))?;
    Ok(out)
}

pub(super) fn compress(data: &[u8], out: &mut Vec<u8>) {
    let mut compressed = Vec::with_capacity(compress_bound(data.len()));
    let result = COMPRESSION.with_borrow_mut(|context| context.compress(&mut compressed, data, LEVEL));
    result.expect("room was made for the worst case");
    out.extend_from_slice(&compressed);
}
