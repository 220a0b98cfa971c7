//! Message sets of Kafka 0.6 and 0.7, and the batches that a log in the format `legacy` keeps of them.
//!
//! A set is messages one after another, each behind its LENGTH; a compressed message holds a whole set. In a log of that
//! format a record's value is one message as it was sent, without its LENGTH, and its offset is the position that the
//! message has in 0.7's log: that of the message before it, plus 4, plus that one's LENGTH.

mod down_convert;
mod message;
#[cfg(test)]
mod tests;
mod to_messages;
mod to_values;
mod up_convert;
mod whole_messages;

pub use down_convert::down_convert;
pub use to_messages::to_messages;
pub use to_values::to_values;
pub use up_convert::{ConvertedBatch, up_convert};
pub use whole_messages::whole_messages;
