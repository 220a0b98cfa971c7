//! Kafka and Redis bytes: frames, message shapes, record batches, replies. No Python, no I/O, no clock.
//!
//! Every entrance takes a limit, every failure is an [`Error`] with a stable [`Code`], and nothing is
//! allocated from a count read off the wire before the input is known to be long enough for it.

pub mod arrow;
pub mod batch;
pub mod columns;
pub mod compression;
mod error;
pub mod frames;
mod ids;
pub mod legacy;
pub mod names;
pub mod reader;
pub mod resp;
pub mod schema;
pub mod stream;
pub mod text;
pub mod varint;

pub use error::{Code, Error, Result, Stop};
