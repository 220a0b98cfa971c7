//! A message set of 0.7 to batches of a log in the format `legacy`.

use std::ops::ControlFlow;

use super::message::{Message, Messages};
use crate::batch::{Builder, NO_HEADERS, Origin};
use crate::compression::Compression;
use crate::{Code, Error, Result};

/// A batch, not yet at its offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The batch: base offset 0, times 0.
    pub batch: Vec<u8>,
    /// How many offsets it takes: as many as its messages have bytes in 0.7's log.
    pub span: i64,
}

/// Check a message set as 0.7.2 does, and make it into batches of about `size` bytes, one message at least in each.
///
/// Messages stay as they were sent; but a wrapper that holds more messages than it has bytes is stored as what it holds,
/// so that each has an offset of its own. What is left over behind the last whole message is left out. `largest`: bytes
/// that a payload may have. `limit`: bytes that all wrappers together may decompress to. First, message by message:
/// `TRUNCATED` (not one whole message), `BAD_LENGTH`, `BAD_MAGIC`, `OVERSIZE` (a payload), `BAD_CRC`. Then
/// `UNKNOWN_COMPRESSION` and, for what wrappers hold, the same but `OVERSIZE`, `NESTED_COMPRESSION`,
/// `CORRUPT_COMPRESSION`, `DECOMPRESSION_LIMIT` (more than `limit`, or 64 times the payload and 1 MiB).
pub fn up_convert(set: &[u8], largest: usize, mut limit: usize, size: usize) -> Result<Vec<Piece>> {
    for message in Messages::new(set) {
        let message = message?;
        if message.payload.len() > largest {
            return Error::fail(
                Code::Oversize,
                format!("a message of {} bytes, and {largest} are taken", message.payload.len()),
            );
        }
        message.check()?;
    }
    let mut pieces = Pieces { done: Vec::new(), batch: Builder::new(set.len().min(size)), span: 0, size };
    for message in Messages::new(set) {
        let message = message?;
        let compression = message.compression()?;
        if compression == Compression::None {
            pieces.push(&message)?;
            continue;
        }
        let (mut count, before) = (0, limit);
        message.open(compression, &mut limit, |_| {
            count += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        if count <= message.span() {
            pieces.push(&message)?;
            continue;
        }
        let mut again = before;
        message.open(compression, &mut again, |inner| pieces.push(inner).map(ControlFlow::Continue))?;
    }
    pieces.finish()
}

/// Batches that are done, and the one that is being made.
struct Pieces {
    done: Vec<Piece>,
    batch: Builder,
    span: usize,
    size: usize,
}

impl Pieces {
    fn push(&mut self, message: &Message<'_>) -> Result<()> {
        if self.batch.count() > 0 && self.batch.len() + message.span() > self.size {
            self.flush()?;
        }
        // Beyond this a message alone is larger than any set.
        let at = i32::try_from(self.span).map_err(|_| Error::new(Code::Oversize, "a batch beyond 2 GiB"))?;
        self.batch.push(at, 0, None, Some(message.bytes), NO_HEADERS)?;
        self.span += message.span();
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let span = std::mem::take(&mut self.span) as i64;
        let full = std::mem::replace(&mut self.batch, Builder::new(self.size));
        let batch = full.finish_spanning(0, span, Origin::NONE, None)?;
        self.done.push(Piece { batch, span });
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Piece>> {
        if self.batch.count() > 0 {
            self.flush()?;
        }
        Ok(self.done)
    }
}
