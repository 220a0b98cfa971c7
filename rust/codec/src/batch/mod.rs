//! Record batches of format version 2.
