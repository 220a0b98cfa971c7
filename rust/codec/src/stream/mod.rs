//! Logs in Redis streams: records as entries of their own, and whole batches as entries.
//!
//! One record is one entry, whose id is that of its offset (see [`ids`](crate::ids)), with the fields `key` and `value`
//! (absent: null), `timestamp` (ms) and `header.NAME` for each header in order; a header without value is the field
//! `null.header.NAME`, empty. A whole batch is one entry with the only field `batch`.

mod append;
mod append_batches;
mod decode_batches;
mod decode_records;
mod fields;
mod json;
mod range;
#[cfg(test)]
mod tests;

pub use append::{Append, Head, MOST_HEADERS};
pub use append_batches::Fence;
pub use decode_batches::{DecodedBatches, decode_batches};
pub use decode_records::{DecodedRecords, decode_records};
