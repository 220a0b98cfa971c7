//! One message of magic 0 or 1: read from the front of a set, and checked; a wrapper is opened.

use std::ops::ControlFlow;

use crate::compression::{Compression, decompress};
use crate::{Code, Error, Result};

/// Bytes of the LENGTH in front of a message.
pub(super) const LENGTH: usize = 4;
/// Bytes in front of the payload, by magic.
const HEADER: [usize; 2] = [5, 6];
/// The attribute bits that say how the payload is compressed.
const CODEC: u8 = 0b11;
/// Wrappers around each other that are opened.
const NESTED: usize = 8;
/// A wrapper may hold this many times its payload, and [`SPARE`] bytes.
const RATIO: usize = 64;
const SPARE: usize = 1 << 20;
/// How the Java library's framing of Snappy begins; 0.7 knows no other.
const XERIAL: &[u8] = b"\x82SNAPPY\0";

/// A message, borrowed from its set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    /// As it was sent, without its LENGTH.
    pub(super) bytes: &'a [u8],
    attributes: u8,
    crc: u32,
    pub(super) payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// A message without its LENGTH. `BAD_LENGTH`, `BAD_MAGIC`, `BAD_LENGTH` (too short for its magic).
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let Some(&magic) = bytes.first() else {
            return Error::fail(Code::BadLength, "a message of no bytes");
        };
        let Some(&header) = HEADER.get(usize::from(magic)) else {
            return Error::fail(Code::BadMagic, "not a message of magic 0 or 1");
        };
        let Some((header, payload)) = bytes.split_at_checked(header) else {
            return Error::fail(Code::BadLength, "a message is smaller than its header");
        };
        let attributes = if magic == 1 { header[1] } else { 0 };
        let [.., a, b, c, d] = *header else {
            return Error::fail(Code::BadLength, "a message is smaller than its header");
        };
        Ok(Self { bytes, attributes, crc: u32::from_be_bytes([a, b, c, d]), payload })
    }

    /// Bytes that it takes in a log of 0.7.
    pub(super) fn span(&self) -> usize {
        LENGTH + self.bytes.len()
    }

    /// `BAD_CRC` if the payload is not what was sent.
    pub(super) fn check(&self) -> Result<()> {
        if self.crc == checksum(self.payload) {
            Ok(())
        } else {
            Error::fail(Code::BadCrc, "a message fails its checksum")
        }
    }

    /// How the payload is compressed. `UNKNOWN_COMPRESSION`.
    pub(super) fn compression(&self) -> Result<Compression> {
        match self.attributes & CODEC {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Gzip),
            2 => Ok(Compression::Snappy),
            _ => Error::fail(Code::UnknownCompression, "messages of 0.7 have no codec 3"),
        }
    }

    /// Give `each` every message that this wrapper holds, those of wrappers inside it too, until it breaks.
    ///
    /// `left`: bytes that may be decompressed; 64 times the payload and 1 MiB at most. Each message's checksum is looked
    /// at. Errors as [`Messages`], `BAD_CRC`, `UNKNOWN_COMPRESSION`, `NESTED_COMPRESSION` (more than 8 around each
    /// other), and of decompression.
    pub(super) fn open(
        &self,
        compression: Compression,
        left: &mut usize,
        mut each: impl FnMut(&Message<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let bound = self.payload.len().saturating_mul(RATIO).saturating_add(SPARE).min(*left);
        let mut inner = bound;
        let opened = open(self.payload, compression, NESTED, &mut inner, &mut each);
        *left -= bound - inner;
        opened.map(drop)
    }
}

fn open(
    payload: &[u8],
    compression: Compression,
    depth: usize,
    left: &mut usize,
    each: &mut dyn FnMut(&Message<'_>) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    if depth == 0 {
        return Error::fail(Code::NestedCompression, "too many compressed messages inside each other");
    }
    if compression == Compression::Snappy && !payload.starts_with(XERIAL) {
        return Error::fail(Code::CorruptCompression, "snappy in messages of 0.7 is framed");
    }
    let set = decompress(compression, payload, *left)?;
    *left -= set.len();
    for message in Messages::new(&set) {
        let message = message?;
        message.check()?;
        let flow = match message.compression()? {
            Compression::None => each(&message)?,
            inner => open(message.payload, inner, depth - 1, left, each)?,
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The messages of a set; each item is a message or the error that ends the walk. What is left over behind whole
/// messages is passed over, as 0.7 does.
///
/// In this order: `TRUNCATED` (not one whole message), `BAD_LENGTH` (negative), `TRUNCATED`, and as [`Message::parse`].
pub(super) struct Messages<'a> {
    rest: &'a [u8],
    first: bool,
}

impl<'a> Messages<'a> {
    pub(super) fn new(set: &'a [u8]) -> Self {
        Self { rest: set, first: true }
    }

    /// None: what is left is no whole message, and others came before it.
    fn cut(&mut self) -> Result<Option<&'a [u8]>> {
        let torn = || {
            if self.first {
                Error::fail(Code::Truncated, "the set ends inside its first message")
            } else {
                Ok(None)
            }
        };
        let Some((length, rest)) = self.rest.split_first_chunk::<LENGTH>() else {
            return torn();
        };
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            return Error::fail(Code::BadLength, "a message has a negative length");
        };
        let Some((message, rest)) = rest.split_at_checked(length) else {
            return torn();
        };
        self.rest = rest;
        self.first = false;
        Ok(Some(message))
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let message = self.cut().and_then(|bytes| bytes.map(Message::parse).transpose()).transpose();
        if !matches!(message, Some(Ok(_))) {
            self.rest = &[];
        }
        message
    }
}

/// CRC-32 as in gzip.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
