//! LZ4 frames, read block by block: a frame may announce blocks of 4 MiB, and nothing is reserved for what it announces.
//!
//! The format: <https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md>.

use std::io::Write;

use lz4_flex::block::{DecompressError, decompress_into_with_dict};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use twox_hash::XxHash32;

use super::{corrupt, over};
use crate::Result;

const MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();
/// A byte of LZ4 stands for this many at most.
const RATIO: usize = 255;
/// How far back linked blocks may reach.
const WINDOW: usize = 64 * 1024;
/// The bit of a block's size that says that it is stored as it is.
const STORED: u32 = 1 << 31;

/// Which header checksums are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Checksum {
    Right,
    RightOrOld,
}

/// A frame's header.
struct Frame {
    linked: bool,
    block_checksum: bool,
    content_checksum: bool,
    content_size: Option<u64>,
    block_most: usize,
}

pub(super) fn decompress(mut data: &[u8], most: usize, checksum: Checksum) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    while !data.is_empty() {
        let Some(frame) = read_header(&mut data, checksum) else {
            return corrupt("broken lz4 frame header");
        };
        read_frame(&mut data, &frame, most, &mut out)?;
    }
    Ok(out)
}

fn read_header(data: &mut &[u8], checksum: Checksum) -> Option<Frame> {
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
    let sums = |from: usize| (XxHash32::oneshot(0, &start[from..end]) >> 8) as u8 == given;
    let right = sums(MAGIC.len()) || (checksum == Checksum::RightOrOld && sums(0));
    if !right {
        return None;
    }
    Some(Frame {
        linked: !has(5),
        block_checksum: has(4),
        content_checksum: has(2),
        content_size,
        // 4 to 7 stand for 64 KiB, 256 KiB, 1 MiB, 4 MiB.
        block_most: 1 << (8 + 2 * (size_class >> 4)),
    })
}

/// Append the blocks of a frame, to its end mark and checksum.
fn read_frame(data: &mut &[u8], frame: &Frame, most: usize, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    loop {
        let Some(size) = take(data).map(u32::from_le_bytes) else {
            return corrupt("an lz4 frame ends early");
        };
        if size == 0 {
            break;
        }
        let Some((block, rest)) = data.split_at_checked((size & !STORED) as usize) else {
            return corrupt("an lz4 frame ends inside a block");
        };
        *data = rest;
        if block.len() > frame.block_most {
            return corrupt("an lz4 block is larger than its frame allows");
        }
        if frame.block_checksum && take(data) != Some(XxHash32::oneshot(0, block).to_le_bytes()) {
            return corrupt("an lz4 block fails its checksum");
        }
        let room = most - out.len();
        if size & STORED == 0 {
            read_block(block, frame, start, room, out)?;
        } else if block.len() > room {
            return over();
        } else {
            out.extend_from_slice(block);
        }
    }
    let content = &out[start..];
    if frame.content_checksum && take(data) != Some(XxHash32::oneshot(0, content).to_le_bytes()) {
        return corrupt("an lz4 frame fails its checksum");
    }
    if frame.content_size.is_some_and(|size| size != content.len() as u64) {
        return corrupt("an lz4 frame's size is not the one announced");
    }
    Ok(())
}

/// Append one compressed block of the frame that begins at `start` of `out`; `room` bytes are left of the bound.
fn read_block(block: &[u8], frame: &Frame, start: usize, room: usize, out: &mut Vec<u8>) -> Result<()> {
    let at = out.len();
    let most = frame.block_most.min(block.len() * RATIO);
    out.resize(at + most.min(room), 0);
    let (before, after) = out.split_at_mut(at);
    let dictionary = if frame.linked { &before[start.max(at.saturating_sub(WINDOW))..] } else { &[] };
    match decompress_into_with_dict(block, after, dictionary) {
        Ok(size) => {
            out.truncate(at + size);
            Ok(())
        }
        Err(DecompressError::OutputTooSmall { .. }) if room < most => over(),
        Err(_) => corrupt("broken lz4 block"),
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
