//! Redis commands and replies.
