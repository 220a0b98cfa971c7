//! LZ4 frames, read block by block: a frame may announce blocks of 4 MiB, and nothing is reserved for what it announces.
//!
//! The format: <https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md>.

use std::hash::Hasher;
use std::io::Write;

use lz4_flex::block::{DecompressError, decompress_into_with_dict};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use twox_hash::XxHash32;

use super::bounds::{corrupt, over};
use crate::Result;

const MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();
/// A byte of LZ4 stands for this many at most.
const RATIO: usize = 255;
/// And for no more than this in most blocks.
const COMMON_RATIO: usize = 16;
/// How far back linked blocks may reach.
pub(super) const WINDOW: usize = 64 * 1024;
/// The bit of a block's size that says that it is stored as it is.
const STORED: u32 = 1 << 31;

/// A frame's header, and how far its blocks were read.
struct Frame {
    linked: bool,
    block_checksum: bool,
    content_checksum: Option<Box<XxHash32>>, // apart, as few have it and frames are moved
    content_size: Option<u64>,
    block_most: usize,
    /// Decompressed bytes so far.
    size: u64,
}

/// Frames of which some blocks have come out.
pub(super) struct Frames<'d> {
    rest: &'d [u8],
    open: Option<Frame>,
}

impl<'d> Frames<'d> {
    pub(super) fn new(data: &'d [u8]) -> Self {
        Self { rest: data, open: None }
    }

    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty() && self.open.is_none()
    }

    /// Append whole blocks to `out` until it has `until` bytes, never more than `most`. `out` ends with the last
    /// [`WINDOW`] bytes that came before.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, until: usize, most: usize) -> Result<()> {
        while out.len() < until && !self.is_done() {
            let frame = match &mut self.open {
                Some(frame) => frame,
                None => match read_header(&mut self.rest) {
                    Some(frame) => self.open.insert(frame),
                    None => return corrupt("broken lz4 frame header"),
                },
            };
            if frame.read(&mut self.rest, out, until, most)? {
                frame.close(&mut self.rest)?;
                self.open = None;
            }
        }
        Ok(())
    }
}

fn read_header(data: &mut &[u8]) -> Option<Frame> {
    let start = *data;
    if take(data)? != MAGIC {
        return None;
    }
    let [flags, size_class] = take(data)?;
    let has = |bit: u8| flags & (1 << bit) != 0;
    // Version 1; bit 1 is reserved; a dictionary (bit 0) is nothing we could have.
    if flags >> 6 != 1 || flags & 0b11 != 0 || size_class & 0b1000_1111 != 0 || size_class < 0x40 {
        return None;
    }
    let content_size = if has(3) { Some(u64::from_le_bytes(take(data)?)) } else { None };
    let end = start.len() - data.len();
    let [given] = take(data)?;
    if (XxHash32::oneshot(0, &start[MAGIC.len()..end]) >> 8) as u8 != given {
        return None;
    }
    Some(Frame {
        linked: !has(5),
        block_checksum: has(4),
        content_checksum: has(2).then(|| Box::new(XxHash32::with_seed(0))),
        content_size,
        // 4 to 7 stand for 64 KiB, 256 KiB, 1 MiB, 4 MiB.
        block_most: 1 << (8 + 2 * (size_class >> 4)),
        size: 0,
    })
}

impl Frame {
    /// Append blocks to `out` until it has `until` bytes, or to the frame's end mark: whether that was reached.
    fn read(&mut self, data: &mut &[u8], out: &mut Vec<u8>, until: usize, most: usize) -> Result<bool> {
        while out.len() < until {
            let Some(size) = take(data).map(u32::from_le_bytes) else {
                return corrupt("an lz4 frame ends early");
            };
            if size == 0 {
                return Ok(true);
            }
            let Some((block, rest)) = data.split_at_checked((size & !STORED) as usize) else {
                return corrupt("an lz4 frame ends inside a block");
            };
            *data = rest;
            if block.len() > self.block_most {
                return corrupt("an lz4 block is larger than its frame allows");
            }
            if self.block_checksum && take(data) != Some(XxHash32::oneshot(0, block).to_le_bytes()) {
                return corrupt("an lz4 block fails its checksum");
            }
            let (at, room) = (out.len(), most - out.len());
            if size & STORED == 0 {
                self.read_block(block, room, out)?;
            } else if block.len() > room {
                return over();
            } else {
                out.extend_from_slice(block);
            }
            self.size += (out.len() - at) as u64;
            if let Some(sum) = &mut self.content_checksum {
                sum.write(&out[at..]);
            }
        }
        Ok(false)
    }

    /// Append one compressed block; `room` bytes are left of the bound.
    fn read_block(&self, block: &[u8], room: usize, out: &mut Vec<u8>) -> Result<()> {
        let at = out.len();
        let reach = if self.linked { self.size.min(WINDOW as u64) as usize } else { 0 };
        let most = self.block_most.min(block.len() * RATIO);
        // Clearing the most that a small block can take would be longer work than decompressing it.
        let mut size = most.min(room).min(block.len() * COMMON_RATIO);
        loop {
            out.resize(at + size, 0);
            let (before, after) = out.split_at_mut(at);
            match decompress_into_with_dict(block, after, &before[at - reach..]) {
                Ok(size) => {
                    out.truncate(at + size);
                    return Ok(());
                }
                Err(DecompressError::OutputTooSmall { .. }) if size < most.min(room) => size = most.min(room),
                Err(DecompressError::OutputTooSmall { .. }) if room < most => return over(),
                Err(_) => return corrupt("broken lz4 block"),
            }
        }
    }

    /// The bytes behind the end mark.
    fn close(&self, data: &mut &[u8]) -> Result<()> {
        if let Some(sum) = &self.content_checksum
            && take(data) != Some(sum.finish_32().to_le_bytes())
        {
            return corrupt("an lz4 frame fails its checksum");
        }
        if self.content_size.is_some_and(|size| size != self.size) {
            return corrupt("an lz4 frame's size is not the one announced");
        }
        Ok(())
    }
}

fn take<const N: usize>(data: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = data.split_first_chunk::<N>()?;
    *data = rest;
    Some(*front)
}

pub(super) fn compress(data: &[u8], out: &mut Vec<u8>) {
    // Kafka's Java clients read independent blocks only.
    let info = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    let written = encoder.write_all(data).map_err(Into::into).and_then(|()| encoder.finish().map(drop));
    written.expect("writing to memory does not fail");
}
