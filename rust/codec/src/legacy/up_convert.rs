//! A message set of 0.7 to batches of a log in the format `legacy`.

use std::ops::ControlFlow;

use super::message::{Message, Messages};
use crate::batch::{Builder, NO_HEADERS, Origin};
use crate::compression::Compression;
use crate::{Code, Error, Result};

/// Bytes that messages may take which a set's wrappers are replaced by.
const REPLACED: usize = 8 << 20;

/// A batch, not yet at its offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedBatch {
    /// The batch: base offset 0, times 0.
    pub bytes: Vec<u8>,
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
/// `CORRUPT_COMPRESSION`, `DECOMPRESSION_LIMIT` (more than `limit`, or 64 times the payload and 1 MiB; or more than 8 MiB
/// of messages in place of wrappers).
pub fn up_convert(set: &[u8], largest: usize, mut limit: usize, size: usize) -> Result<Vec<ConvertedBatch>> {
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
    let mut batches =
        ConvertedBatches { done: Vec::new(), batch: Builder::new(set.len().min(size)), span: 0, size };
    let mut replaced = 0;
    for message in Messages::new(set) {
        let message = message?;
        let compression = message.compression()?;
        if compression == Compression::None {
            batches.push(&message)?;
            continue;
        }
        let (mut count, before) = (0, limit);
        message.open(compression, &mut limit, |_| {
            count += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        if count <= message.span() {
            batches.push(&message)?;
            continue;
        }
        let mut again = before;
        message.open(compression, &mut again, |inner| {
            replaced += inner.span();
            if replaced > REPLACED {
                return Error::fail(
                    Code::DecompressionLimit,
                    "wrappers hold far more messages than they have bytes",
                );
            }
            batches.push(inner).map(ControlFlow::Continue)
        })?;
    }
    batches.finish()
}

/// Batches that are done, and the one that is being made.
struct ConvertedBatches {
    done: Vec<ConvertedBatch>,
    batch: Builder,
    span: usize,
    size: usize,
}

impl ConvertedBatches {
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
        let bytes = full.finish_spanning(0, span, Origin::NONE, None)?;
        self.done.push(ConvertedBatch { bytes, span });
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<ConvertedBatch>> {
        if self.batch.count() > 0 {
            self.flush()?;
        }
        Ok(self.done)
    }
}
