//! How much of a file of 0.7 can be believed.

use super::message::Messages;

/// Bytes of the whole messages in front whose checksums are right. What follows is torn, or no message.
#[must_use]
pub fn whole_messages(set: &[u8]) -> usize {
    Messages::new(set)
        .map_while(|message| message.ok().filter(|message| message.check().is_ok()))
        .map(|message| message.span())
        .sum()
}
