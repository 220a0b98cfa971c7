//! Message sets of magic 0 and 1 (Kafka 0.8 to 0.10), lifted to version 2 batches and lowered from them.
//!
//! A set is messages one after another, each behind its offset and size; a compressed message holds a whole set in its
//! value. The format: <https://kafka.apache.org/documentation/#messageset>.

mod lift;
mod lower;
mod message;
#[cfg(test)]
mod tests;

pub use lift::lift;
pub use lower::lower;
