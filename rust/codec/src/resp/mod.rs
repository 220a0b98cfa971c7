//! Redis commands and replies (RESP2 and RESP3). Source: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

mod commands;
mod groups;
mod replies;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use commands::{DIGITS, Pen, array_size, bulk_size, decimal, digits};
pub use commands::{Part, pack, packed_size, parts, words};
pub use groups::Groups;
pub use replies::{Replies, parse};
pub(crate) use walk::announcement;
pub use walk::{MOST_LEVELS, Sink};
