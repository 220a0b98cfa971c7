//! Record batches as Arrow columns and back: <https://arrow.apache.org/docs/format/Columnar.html>.
//!
//! Buffers are made as Arrow wants them, numbers in this machine's byte order; handing them to another library is left to
//! whoever may use its interface.

mod aborted;
mod column;
pub mod lent;
mod partitioner;
mod producer_run;
mod record_columns;
mod rows;

pub use column::{Cells, Column, Headers, Nulls};
pub use partitioner::partition_for;
pub use producer_run::{PartitionBatch, ProducerRun};
pub use record_columns::{Name, RecordColumns, Wanted};
pub use rows::ArrowRecords;

#[cfg(test)]
mod tests;
