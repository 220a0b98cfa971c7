//! Length-prefixed frames out of a byte stream.
