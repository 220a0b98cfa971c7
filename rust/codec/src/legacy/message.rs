//! One message of magic 0 or 1: read from the front of a set, and written.

use crate::compression::Compression;
use crate::{Code, Error, Result};

/// Bytes of the offset and size in front of a message.
const PREFIX: usize = 12;
/// Bytes of a message with neither key nor value, by magic.
const SMALLEST: [usize; 2] = [14, 22];
/// The attribute bits that say how the value is compressed.
const COMPRESSION: u8 = 0b0111;
/// The attribute bit that says that the time is that of append; magic 1 only.
const LOG_APPEND_TIME: u8 = 0b1000;

/// A message, borrowed from its set. Its offset is not kept: an up-converted set gets new ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) magic: u8,
    pub(super) compression: Compression,
    pub(super) log_append_time: bool,
    /// In ms; None in magic 0, which has no times.
    pub(super) timestamp: Option<i64>,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
}

/// The messages of a set; each item is a message or the error that ends the walk.
///
/// In this order: `TRUNCATED`, `BAD_LENGTH`, `TRUNCATED`, `BAD_MAGIC`, `BAD_LENGTH` (too short for magic 1), `BAD_CRC`,
/// `UNKNOWN_COMPRESSION`, `BAD_RECORD`.
pub(super) struct Messages<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let message = cut(&mut self.0).and_then(read);
        if message.is_err() {
            self.0 = &[];
        }
        Some(message)
    }
}

/// Take the bytes of one message off the front.
fn cut<'a>(set: &mut &'a [u8]) -> Result<&'a [u8]> {
    let Some((prefix, rest)) = set.split_first_chunk::<PREFIX>() else {
        return Error::fail(Code::Truncated, "the input ends inside a message's offset and size");
    };
    let [.., a, b, c, d] = *prefix;
    let size = i32::from_be_bytes([a, b, c, d]);
    if size < SMALLEST[0] as i32 {
        return Error::fail(Code::BadLength, "a message size is smaller than a message");
    }
    let Some((message, rest)) = rest.split_at_checked(size as usize) else {
        return Error::fail(Code::Truncated, "the input ends inside a message");
    };
    *set = rest;
    Ok(message)
}

fn read(message: &[u8]) -> Result<Message<'_>> {
    let &[a, b, c, d, magic, attributes, ref rest @ ..] = message else {
        return Error::fail(Code::BadLength, "a message size is smaller than a message");
    };
    if magic > 1 {
        return Error::fail(Code::BadMagic, "not a message of magic 0 or 1");
    }
    if message.len() < SMALLEST[usize::from(magic)] {
        return Error::fail(Code::BadLength, "a message size is smaller than a message of magic 1");
    }
    if u32::from_be_bytes([a, b, c, d]) != checksum(&message[4..]) {
        return Error::fail(Code::BadCrc, "a message fails its checksum");
    }
    let compression = Compression::from_bits(attributes & COMPRESSION)?;
    if compression == Compression::Zstd {
        return Error::fail(Code::UnknownCompression, "messages older than version 2 have no zstd");
    }
    let broken = || Error::new(Code::BadRecord, "a message's lengths do not add up");
    let (timestamp, rest) = match (magic, rest.split_first_chunk()) {
        (1, Some((time, rest))) => (Some(i64::from_be_bytes(*time)), rest),
        _ => (None, rest),
    };
    let (key, rest) = nullable(rest).ok_or_else(broken)?;
    let (value, rest) = nullable(rest).ok_or_else(broken)?;
    if !rest.is_empty() {
        return Err(broken());
    }
    let log_append_time = magic == 1 && attributes & LOG_APPEND_TIME != 0;
    Ok(Message { magic, compression, log_append_time, timestamp, key, value })
}

/// Bytes behind a 32-bit length, where -1 stands for null; and what follows them. The outer None: impossible.
fn nullable(data: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (size, rest) = data.split_first_chunk()?;
    match i32::from_be_bytes(*size) {
        -1 => Some((None, rest)),
        size => rest.split_at_checked(usize::try_from(size).ok()?).map(|(bytes, rest)| (Some(bytes), rest)),
    }
}

/// Append a message, uncompressed, of the magic it says. `OVERSIZE` beyond 2 GiB.
pub(super) fn write(out: &mut Vec<u8>, offset: i64, message: &Message<'_>) -> Result<()> {
    let bytes = |cell: Option<&[u8]>| cell.map_or(0, <[u8]>::len);
    let size = SMALLEST[usize::from(message.magic)] + bytes(message.key) + bytes(message.value);
    let Ok(size) = i32::try_from(size) else {
        return Error::fail(Code::Oversize, "a message cannot be larger than 2 GiB");
    };
    out.extend(offset.to_be_bytes());
    out.extend(size.to_be_bytes());
    let start = out.len();
    out.extend([0; 4]);
    out.extend([message.magic, if message.log_append_time { LOG_APPEND_TIME } else { 0 }]);
    if message.magic == 1 {
        out.extend(message.timestamp.unwrap_or(-1).to_be_bytes());
    }
    for cell in [message.key, message.value] {
        // Not longer than the size, which fits.
        out.extend(cell.map_or(-1, |cell| cell.len() as i32).to_be_bytes());
        out.extend_from_slice(cell.unwrap_or_default());
    }
    let crc = checksum(&out[start + 4..]);
    out[start..start + 4].copy_from_slice(&crc.to_be_bytes());
    Ok(())
}

/// CRC-32 as in gzip.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
