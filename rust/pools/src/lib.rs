//! Small blocks of memory, in pools that are given back to the system one by one.
//!
//! All pools lie in one reserved range of addresses, so whose a block is, is a comparison. A pool has blocks of one
//! size; its head lies in a table beside the range's start, so that nothing of an empty pool is needed.
//!
//! Nothing here takes a lock: whoever calls sees to it that calls come one after the other.

mod pool_set;
mod range;

pub use range::{EmptyPools, LARGEST, Range};
