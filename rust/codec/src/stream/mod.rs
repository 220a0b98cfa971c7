//! Logs in Redis streams: records as entries of their own.
//!
//! One record is one entry, whose id is that of its offset (see [`ids`](crate::ids)), with the fields `key` and `value`
//! (absent: null), `timestamp` (ms) and `header.NAME` for each header in order; a header without value is the field
//! `null.header.NAME`, empty.

mod append;
mod fields;
#[cfg(test)]
mod tests;

pub use append::{Append, Head, MOST_HEADERS};
