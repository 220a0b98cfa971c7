//! Batches of a log in the format `legacy` to what clients of today read of it.

use std::ops::ControlFlow;

use super::message::{LENGTH, Message};
use crate::batch::{Builder, Header, NO_HEADERS, Origin, Records, payload, whole};
use crate::compression::Compression;
use crate::{Code, Error, Result};

/// Bytes of a record beside its value, at most.
const AROUND: usize = 24;

/// The payloads of messages as version 2 batches, and the offset after them.
///
/// The first message is the one that covers `offset`, or the next. What a wrapper holds has consecutive offsets from
/// the wrapper's own; those before `offset` are left out, unless there are no others. Times are those of append. About
/// `max_bytes`, but one record at least if there is one. `batches`: whole batches of a log in the format `legacy`.
/// `limit`: bytes that wrappers may decompress to; `DECOMPRESSION_LIMIT` where there is nothing to give without more.
/// Errors of a batch's header, `BAD_RECORD`, `BAD_OFFSET`, and those of a message.
pub fn to_values(batches: &[u8], offset: i64, max_bytes: usize, limit: usize) -> Result<(Vec<u8>, i64)> {
    let mut view = View { out: Vec::new(), run: Builder::new(0), base: 0, next: offset, max_bytes, limit };
    for found in whole(batches) {
        let (batch, bytes) = found?;
        if batch.header.last_offset() < offset {
            continue;
        }
        match view.add(&batch.header, bytes) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => break,
            Err(error) if error.code == Code::DecompressionLimit && !view.out.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    Ok((view.out, view.next))
}

/// The bytes written so far, and the batch under way: its records begin at `base`, and `next` is the offset after them.
struct View {
    out: Vec<u8>,
    run: Builder,
    base: i64,
    next: i64,
    max_bytes: usize,
    limit: usize,
}

impl View {
    fn add(&mut self, header: &Header, bytes: &[u8]) -> Result<ControlFlow<()>> {
        let records = payload(header, bytes, 0)?;
        for record in Records::new(header, &records)? {
            let record = record?;
            let at = record.offset(header)?;
            let Some(value) = record.value else {
                return Error::fail(Code::BadRecord, "a record that holds no message");
            };
            let after = at.saturating_add((LENGTH + value.len()) as i64);
            if after <= self.next {
                continue;
            }
            let message = Message::parse(value)?;
            let flow = match message.compression()? {
                Compression::None => self.push(header, at, after, message.payload)?,
                compression => {
                    self.seal(header)?;
                    self.open(header, at, after, &message, compression)?
                }
            };
            if flow.is_break() {
                self.seal(header)?;
                return Ok(flow);
            }
        }
        self.seal(header)?;
        // A batch of no records takes offsets too (a log that begins far up); who asks for them goes on behind it.
        self.next = self.next.max(header.last_offset().saturating_add(1));
        Ok(ControlFlow::Continue(()))
    }

    /// Append what a wrapper holds. If there is no room for all of it, `next` is where the rest begins.
    fn open(
        &mut self,
        header: &Header,
        at: i64,
        after: i64,
        message: &Message<'_>,
        compression: Compression,
    ) -> Result<ControlFlow<()>> {
        let mut skip = self.next.saturating_sub(at).max(0);
        let mut limit = self.limit;
        if skip > 0 {
            let mut count = 0;
            message.open(compression, &mut limit, |_| {
                count += 1;
                Ok(ControlFlow::Continue(()))
            })?;
            skip = skip.min(count - 1); // the last one, at least, tells a client what comes next
        }
        let (mut place, mut full) = (at, false);
        let opened = message.open(compression, &mut limit, |inner| {
            if skip > 0 {
                skip -= 1;
            } else {
                let flow = self.push(header, place, place + 1, inner.payload)?;
                full = flow.is_break();
                if full {
                    return Ok(flow);
                }
            }
            place += 1;
            Ok(ControlFlow::Continue(()))
        });
        match opened {
            // A wrapper inside was too large; those before it are an answer.
            Err(error) if error.code == Code::DecompressionLimit && self.run.count() > 0 => full = true,
            opened => opened?,
        }
        self.limit = limit;
        if full {
            return Ok(ControlFlow::Break(()));
        }
        self.next = after;
        self.seal(header)?;
        Ok(ControlFlow::Continue(()))
    }

    /// Append a record at offset `at`, before `after`; breaks if there is no room for it.
    fn push(&mut self, header: &Header, at: i64, after: i64, value: &[u8]) -> Result<ControlFlow<()>> {
        let written = self.out.len() + if self.run.count() > 0 { self.run.len() } else { 0 };
        if written > 0 && written + value.len() + AROUND > self.max_bytes {
            return Ok(ControlFlow::Break(()));
        }
        if self.run.count() == 0 {
            self.run = Builder::new(self.max_bytes.min(header.size));
            self.base = at;
        }
        let Ok(delta) = i32::try_from(at - self.base) else {
            return Error::fail(Code::BadOffset, "the offsets of a batch are too far apart");
        };
        self.run.push(delta, header.max_timestamp, None, Some(value), NO_HEADERS)?;
        self.next = after;
        Ok(ControlFlow::Continue(()))
    }

    /// End the batch under way, if there is one.
    fn seal(&mut self, header: &Header) -> Result<()> {
        if self.run.count() > 0 {
            let run = std::mem::replace(&mut self.run, Builder::new(0));
            let span = self.next - self.base;
            let stamp = Some((header.leader_epoch, header.max_timestamp));
            self.out.extend(run.finish_spanning(self.base, span, Origin::NONE, stamp)?);
        }
        Ok(())
    }
}
