//! A cursor that never reads past its input.
