//! Magic 0 and 1 message sets.
