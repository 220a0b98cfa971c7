//! Zstandard. A frame of one piece at most is decompressed in one go: it needs no window of its own.

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zstd::zstd_safe::{
    CCtx, DCtx, InBuffer, OutBuffer, compress_bound, decompress_bound, find_frame_compressed_size,
    get_error_name, get_frame_content_size,
};

use super::bounds::{PIECE, corrupt, over};
use crate::Result;

/// The level of Kafka's clients.
const LEVEL: i32 = 3;
/// zstd's error code for running out of room.
const NO_ROOM: &str = "Destination buffer is too small";
/// The largest window of a frame: what Kafka's Java library takes, and zstd's own default.
const LARGEST_WINDOW: u64 = 1 << 27;
/// The window that every decoder should take (RFC 8878, 3.1.1.1.2); the levels up to 19 need no more.
const COMMON_WINDOW: u64 = 1 << 23;

thread_local! {
    // Making one takes 20 us, ten times as long as a small batch.
    static DECOMPRESSION: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    static COMPRESSION: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
}

/// Held by whoever holds a window that is not common, so that there is one of them in the process.
static LARGE_WINDOW: Mutex<()> = Mutex::new(());

/// Frames of which some bytes have come out.
pub(super) struct Frames<'d> {
    rest: &'d [u8],
    open: Option<Open<'d>>,
    /// Frames that can give more than this are decompressed as a stream.
    step: usize,
}

/// A frame that is decompressed as a stream.
struct Open<'d> {
    context: DCtx<'static>,
    frame: &'d [u8],
    used: usize,
    given: u64,
    announced: Option<u64>,
    _alone: Option<MutexGuard<'static, ()>>,
}

impl<'d> Frames<'d> {
    pub(super) fn new(data: &'d [u8], step: usize) -> Self {
        Self { rest: data, open: None, step }
    }

    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty() && self.open.is_none()
    }

    /// Append to `out` until it has `until` bytes, never more than `most`. A frame that announces too much is over the
    /// limit, one that gives more than it announces is corrupt.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, until: usize, most: usize) -> Result<()> {
        while out.len() < until && !self.is_done() {
            match &mut self.open {
                None => self.begin(out, most)?,
                Some(open) => {
                    if open.read(out, until, most)? {
                        self.open = None;
                    }
                }
            }
        }
        Ok(())
    }

    /// The next frame: appended to `out` if it is small, else opened.
    fn begin(&mut self, out: &mut Vec<u8>, most: usize) -> Result<()> {
        let left = most - out.len();
        let Ok(announced) = get_frame_content_size(self.rest) else {
            return corrupt("not a zstd frame");
        };
        if announced.is_some_and(|size| size > left as u64) {
            return over();
        }
        let window = window(self.rest).or(announced).unwrap_or_default();
        if window > LARGEST_WINDOW {
            return corrupt("the window of a zstd frame is too large");
        }
        let Ok(size) = find_frame_compressed_size(self.rest) else {
            return corrupt("a zstd frame without an end");
        };
        let (frame, rest) = self.rest.split_at(size);
        // The size that the frame announces; without one, the size that its blocks can hold.
        let Ok(largest) = decompress_bound(frame) else {
            return corrupt("broken zstd blocks");
        };
        self.rest = rest;
        if largest > self.step as u64 {
            self.open = Some(Open::new(frame, announced, window));
            return Ok(());
        }
        let plain = decompress_frame(frame, largest as usize, left)?;
        if out.is_empty() {
            *out = plain;
        } else {
            out.extend_from_slice(&plain);
        }
        Ok(())
    }
}

impl<'d> Open<'d> {
    fn new(frame: &'d [u8], announced: Option<u64>, window: u64) -> Self {
        let alone = || LARGE_WINDOW.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            context: DCtx::create(),
            frame,
            used: 0,
            given: 0,
            announced,
            _alone: (window > COMMON_WINDOW).then(alone),
        }
    }

    /// Append bytes to `out`; whether the frame ended.
    fn read(&mut self, out: &mut Vec<u8>, until: usize, most: usize) -> Result<bool> {
        let at = out.len();
        let end = until.min(most.saturating_add(1));
        if out.capacity() == at {
            out.reserve((end - at).min(PIECE));
        }
        let mut input = InBuffer { src: self.frame, pos: self.used };
        let mut output = OutBuffer::around_pos(out, at);
        let Ok(wanted) = self.context.decompress_stream(&mut output, &mut input) else {
            return corrupt("broken zstd");
        };
        let progress = input.pos() > self.used || out.len() > at;
        self.used = input.pos();
        self.given += (out.len() - at) as u64;
        if self.announced.is_some_and(|size| self.given > size) {
            return corrupt("a zstd frame gives more than it announces");
        }
        if out.len() > most {
            return over();
        }
        if wanted > 0 {
            return if progress { Ok(false) } else { corrupt("a zstd frame ends early") };
        }
        // An empty last block keeps zstd itself from looking.
        if self.announced.is_some_and(|size| self.given != size) {
            return corrupt("a zstd frame gives less than it announces");
        }
        Ok(true)
    }
}

/// The window that a frame's header asks for; None where that is the size of its content, or for no frame.
/// Source: RFC 8878, 3.1.1.1.
fn window(frame: &[u8]) -> Option<u64> {
    const SINGLE_SEGMENT: u8 = 1 << 5;
    match *frame {
        [0x28, 0xb5, 0x2f, 0xfd, descriptor, window, ..] if descriptor & SINGLE_SEGMENT == 0 => {
            let base = 1_u64 << (10 + (window >> 3));
            Some(base + base / 8 * u64::from(window & 7))
        }
        _ => None,
    }
}

/// `largest`: what the frame can give; `left`: what it may.
fn decompress_frame(frame: &[u8], largest: usize, left: usize) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(left.min(largest));
    match DECOMPRESSION.with_borrow_mut(|context| context.decompress(&mut out, frame)) {
        Ok(_) => Ok(out),
        Err(code) if largest > left && get_error_name(code) == NO_ROOM => over(),
        Err(_) => corrupt("broken zstd"),
    }
}

pub(super) fn compress(data: &[u8], out: &mut Vec<u8>) {
    let mut compressed = Vec::with_capacity(compress_bound(data.len()));
    let result = COMPRESSION.with_borrow_mut(|context| context.compress(&mut compressed, data, LEVEL));
    result.expect("room was made for the worst case");
    out.extend_from_slice(&compressed);
}
