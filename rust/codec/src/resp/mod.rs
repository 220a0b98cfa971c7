//! Redis commands and replies (RESP2 and RESP3). Source: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

mod commands;
mod replies;
#[cfg(test)]
mod tests;

pub use commands::{pack, packed_size};
pub use replies::{MOST_LEVELS, Replies, Sink};
