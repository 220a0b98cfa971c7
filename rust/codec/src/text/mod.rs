//! The bytes of the text protocol: lines out of a stream, runs of PRODUCE lines, messages of a CONSUME answer.

mod arguments;
mod encoding;
mod lines;
mod messages;
mod produce;

pub use arguments::{Produce, parse_produce};
pub use encoding::{Encoding, write_number};
pub use lines::{Lines, OVER, RUN};
pub use messages::{Limits, Written, write_messages};
pub use produce::{Built, Outcome, ProduceRun, TopicPlan};

#[cfg(test)]
mod tests;
