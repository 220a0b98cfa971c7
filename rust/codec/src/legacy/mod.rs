//! Message sets of magic 0 and 1 (Kafka 0.8 to 0.10), up-converted to version 2 batches and down-converted from them.
//!
//! A set is messages one after another, each behind its offset and size; a compressed message holds a whole set in its
//! value. The format: <https://kafka.apache.org/documentation/#messageset>.

mod down_convert;
mod message;
#[cfg(test)]
mod tests;
mod up_convert;

pub use down_convert::down_convert;
pub use up_convert::up_convert;
