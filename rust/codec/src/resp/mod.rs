//! Redis commands and replies (RESP2 and RESP3). Source: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

mod commands;
mod groups;
mod replies;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use commands::{DIGITS, Writer, announce, array_size, bulk_size, decimal, digits};
pub use commands::{EncodedPart, encode_command_parts, encode_commands, encoded_size, words};
pub use groups::Groups;
pub use replies::{Replies, parse_reply};
pub(crate) use walk::announcement;
pub use walk::{MOST_LEVELS, Sink};
