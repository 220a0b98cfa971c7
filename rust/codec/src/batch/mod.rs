//! Version 2 record batches, as bytes: checked, walked, stamped, searched and rewritten without building records.
//!
//! The format: <https://kafka.apache.org/documentation/#recordbatch>. A header of 61 bytes, then records, which may be
//! compressed as a whole. The checksum covers everything from the attributes on, so base offset and leader epoch can be
//! given by whoever stores the batch.

mod builder;
mod each;
mod find;
mod header;
mod records;
mod rewrite;
mod stamps;
mod validate;
mod walk;

pub use builder::Origin;
pub(crate) use builder::{Builder, NO_HEADERS, record_size};
pub(crate) use each::each_record;
pub use find::find_time;
pub use header::{Batch, HEADER_SIZE, Header};
pub use records::{Headers, Record, Records, payload};
pub(crate) use records::{bytes_left, take_record};
pub use rewrite::{assign_offsets, recompress};
pub use validate::{validate_batch, validate_batches};
pub use walk::{batch_headers, slice_batches};
pub(crate) use walk::{verify, whole};

#[cfg(test)]
mod tests;
