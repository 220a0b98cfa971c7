//! Record batches as Arrow columns: <https://arrow.apache.org/docs/format/Columnar.html>.
//!
//! Buffers are made as Arrow wants them, numbers in this machine's byte order; handing them to another library is left to
//! whoever may use its interface.

mod aborted;
mod column;
mod page;

pub use column::{Cells, Column, Headers, Nulls};
pub use page::{Name, Page, Wanted};

#[cfg(test)]
mod tests;
