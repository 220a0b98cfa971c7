//! The messages of a CONSUME answer out of record batches: `offset:value,offset:value`.

use std::ops::ControlFlow;

use super::encoding::{Counter, Encoding};
use crate::batch::{Header, Record, each_record, whole};
use crate::{Code, Error, Result};

/// The limits of an answer, and of the work to make it.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Messages.
    pub messages: usize,
    /// Bytes of text; the first message may be longer.
    pub bytes: usize,
    /// Bytes of a value, as it lies in its record.
    pub value: usize,
    /// Bytes that batches may decompress to.
    pub decompressed: usize,
}

/// The answer written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Messages.
    pub messages: usize,
    /// The offset after the last one, or after the batches that were passed over.
    pub next: i64,
    /// A limit ended it, not the end of the batches.
    pub full: bool,
}

/// Append the messages of `batches` whose offsets are `start` or above and below `limit`, as text.
///
/// Control batches are passed over. `OVERSIZE` for a first message with a value that is too large, `DECOMPRESSION_LIMIT`,
/// and what broken batches give.
pub fn write_messages(
    batches: &[u8],
    start: i64,
    limit: i64,
    encoding: Encoding,
    limits: Limits,
    out: &mut Vec<u8>,
) -> Result<Written> {
    let mut left = limits.decompressed;
    let most = out.len().saturating_add(limits.bytes);
    let mut writer = Writer {
        start,
        limit,
        encoding,
        limits,
        most,
        out,
        counter: Counter::default(),
        messages: 0,
        next: start,
        full: false,
    };
    for found in whole(batches) {
        let (batch, bytes) = found?;
        let header = batch.header;
        if header.last_offset() < start {
            continue;
        }
        if !header.control() {
            each_record(&header, bytes, &mut left, |record| writer.write(&header, record))?;
        }
        if writer.full {
            break;
        }
        writer.next = writer.next.max(header.last_offset().saturating_add(1));
    }
    Ok(Written { messages: writer.messages, next: writer.next, full: writer.full })
}

struct Writer<'o> {
    start: i64,
    limit: i64,
    encoding: Encoding,
    limits: Limits,
    /// Bytes that `out` may have before another message.
    most: usize,
    out: &'o mut Vec<u8>,
    counter: Counter,
    messages: usize,
    next: i64,
    full: bool,
}

impl Writer<'_> {
    #[inline]
    fn write(&mut self, header: &Header, record: &Record<'_>) -> Result<ControlFlow<()>> {
        let offset = record.offset(header)?;
        if offset < self.start {
            return Ok(ControlFlow::Continue(()));
        }
        let value = record.value.unwrap_or_default();
        let large = value.len() > self.limits.value;
        if large && self.messages == 0 && offset < self.limit && self.limits.messages > 0 {
            return Error::fail(Code::Oversize, "a value is larger than an answer may be");
        }
        let size = self.out.len() + value.len();
        if large
            || offset >= self.limit
            || self.messages >= self.limits.messages
            || (self.messages > 0 && size > self.most)
        {
            self.full = true;
            return Ok(ControlFlow::Break(()));
        }
        if self.messages > 0 {
            self.out.push(b',');
        }
        self.counter.write(offset, self.out);
        self.out.push(b':');
        self.encoding.write(value, self.out);
        self.messages += 1;
        self.next = offset.saturating_add(1);
        Ok(ControlFlow::Continue(()))
    }
}
