//! Batches to columns and back.
