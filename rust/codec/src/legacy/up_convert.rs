//! Old messages to a version 2 batch.

use super::message::{Message, Messages};
use crate::batch::{Builder, NO_HEADERS, Origin};
use crate::compression::{Compression, decompress_old};
use crate::{Code, Error, Result};

/// A message set of magic 0 and 1 as one version 2 batch: not compressed, base offset 0, offsets dense in the order of
/// the messages, keys and values (null too) as they are.
///
/// Times are the messages' own, in ms; those in a wrapper stamped on append get the wrapper's; magic 0 gets `now`.
/// `limit` bounds the decompressed bytes of all wrappers together. Errors of a message as
/// [`Messages`], in wrappers too; of decompression; `BAD_RECORD` (a wrapper without value), `NESTED_COMPRESSION`,
/// `BAD_MAGIC` (a message in a wrapper of another magic), `BAD_COUNT` (no messages), `OUT_OF_RANGE` (times too far
/// apart), `OVERSIZE`.
pub fn up_convert(messages: &[u8], mut limit: usize, now: i64) -> Result<Vec<u8>> {
    let mut batch = Builder::new(messages.len());
    let mut next = 0;
    for message in Messages(messages) {
        let message = message?;
        if message.compression == Compression::None {
            push(&mut batch, &mut next, &message, message.timestamp.unwrap_or(now))?;
            continue;
        }
        let Some(value) = message.value else {
            return Error::fail(Code::BadRecord, "a compressed message has no value");
        };
        let set = decompress_old(message.compression, value, limit)?;
        limit -= set.len();
        if set.is_empty() {
            return Error::fail(Code::BadCount, "a compressed message holds no messages");
        }
        unwrap(&mut batch, &mut next, &message, &set, now)?;
    }
    batch.finish(Compression::None, 0, -1, Origin::NONE)
}

/// Append the messages of the set that `wrapper` holds.
fn unwrap(batch: &mut Builder, next: &mut i32, wrapper: &Message, set: &[u8], now: i64) -> Result<()> {
    for message in Messages(set) {
        let message = message?;
        if message.compression != Compression::None {
            return Error::fail(Code::NestedCompression, "a compressed message in a compressed message");
        }
        if message.magic != wrapper.magic {
            return Error::fail(Code::BadMagic, "a message in a wrapper of another magic");
        }
        let stamped = if wrapper.log_append_time { wrapper.timestamp } else { message.timestamp };
        push(batch, next, &message, stamped.unwrap_or(now))?;
    }
    Ok(())
}

fn push(batch: &mut Builder, next: &mut i32, message: &Message, timestamp: i64) -> Result<()> {
    let Some(after) = next.checked_add(1) else {
        return Error::fail(Code::Oversize, "a batch cannot have more than 2^31 records");
    };
    batch.push(*next, timestamp, message.key, message.value, NO_HEADERS)?;
    *next = after;
    Ok(())
}
