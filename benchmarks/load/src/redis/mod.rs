//! Redis itself, without a broker: what the same records cost in plain XADDs and XRANGEs. The ceiling for the Redis store.

pub mod add;
mod command;
mod entry;
pub mod range;
mod resp;

pub use entry::batch;
