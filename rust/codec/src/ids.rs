//! Offsets and Redis stream ids.
