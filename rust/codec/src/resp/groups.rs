//! Where replies end, so that they can be handed on unparsed.

use std::collections::VecDeque;
use std::convert::Infallible;

use super::walk::{Sink, Walk};
use crate::{Error, Result, Stop};

/// Finds the ends of replies, and of groups of replies, in a stream; the bytes stay with the caller.
#[derive(Debug)]
pub struct Groups {
    walk: Walk<()>,
    /// How many replies each group to come has.
    joined: VecDeque<usize>,
    /// Replies still to come of the group begun; 0 before it begins.
    missing: usize,
    /// Bytes of it that were looked at.
    seen: usize,
    dead: Option<Error>,
}

impl Groups {
    /// Replies of at most `limit` bytes each.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { walk: Walk::new(limit), joined: VecDeque::new(), missing: 0, seen: 0, dead: None }
    }

    /// The next `count` replies, after those joined before, are one group; nothing happens for 0. Where none are joined
    /// a reply is a group of its own. A group begins with its first byte.
    pub fn join(&mut self, count: usize) {
        if count > 0 {
            self.joined.push_back(count);
        }
    }

    /// Where the group ends whose bytes so far are `data`, from its first; None if they are not all there.
    ///
    /// Call it again with more behind the same bytes, or, after an end, with what follows it. What was looked at is not
    /// looked at again. `BAD_RESP`, `OVERSIZE`, as a parser finds them; every later call gives the same error.
    pub fn end(&mut self, data: &[u8]) -> Result<Option<usize>> {
        if let Some(error) = &self.dead {
            return Err(error.clone());
        }
        if data.is_empty() {
            return Ok(None);
        }
        if self.missing == 0 {
            self.missing = self.joined.pop_front().unwrap_or(1);
        }
        loop {
            match self.walk.step(&data[self.seen..], &mut Nothing) {
                Ok(Some((size, whole))) => {
                    self.seen += size;
                    self.missing -= usize::from(whole.is_some());
                    if self.missing == 0 {
                        return Ok(Some(std::mem::take(&mut self.seen)));
                    }
                }
                Ok(None) => return Ok(None),
                Err(Stop::Rule(error)) => {
                    self.dead = Some(error.clone());
                    return Err(error);
                }
                Err(Stop::Foreign(never)) => match never {},
            }
        }
    }
}

/// Makes nothing of any value.
struct Nothing;

impl Sink for Nothing {
    type Value = ();
    type Failure = Infallible;

    fn null(&mut self) {}
    fn boolean(&mut self, _: bool) {}
    fn integer(&mut self, _: i64) {}
    fn big(&mut self, _: &str) -> Result<(), Infallible> {
        Ok(())
    }
    fn float(&mut self, _: f64) {}
    fn text(&mut self, _: &str) {}
    fn bytes(&mut self, _: &[u8]) {}
    fn error(&mut self, _: &str) -> Result<(), Infallible> {
        Ok(())
    }
    fn list(&mut self, _: Vec<()>) -> Result<(), Infallible> {
        Ok(())
    }
}
