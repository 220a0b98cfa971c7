//! Replies out of a byte stream, whatever way it is cut.

use super::walk::{Sink, Walk};
use crate::{Code, Error, Result, Stop};

/// Parses a stream of replies; keeps what is unfinished.
#[derive(Debug)]
pub struct Replies<V> {
    walk: Walk<V>,
    /// The bytes of an unfinished element.
    rest: Vec<u8>,
    dead: Option<Error>,
}

impl<V> Replies<V> {
    /// Replies of at most `limit` bytes each.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { walk: Walk::new(limit), rest: Vec::new(), dead: None }
    }

    /// Bytes of the unfinished reply so far.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.walk.used + self.rest.len()
    }

    /// Append the replies that `data` completes to `done`.
    ///
    /// `BAD_RESP`, `OVERSIZE` (a reply above the limit) are final: every later call gives the same error.
    pub fn feed<S: Sink<Value = V>>(
        &mut self,
        data: &[u8],
        sink: &mut S,
        done: &mut Vec<V>,
    ) -> Result<(), Stop<S::Failure>> {
        if let Some(error) = &self.dead {
            return Err(error.clone().into());
        }
        let mut rest = std::mem::take(&mut self.rest);
        let result = if rest.is_empty() {
            self.parse(data, sink, done).map(|used| rest.extend_from_slice(&data[used..]))
        } else {
            rest.extend_from_slice(data);
            self.parse(&rest, sink, done).map(|used| drop(rest.drain(..used)))
        };
        if rest.is_empty() {
            // A large reply must not leave its memory behind.
            rest = Vec::new();
        }
        self.rest = rest;
        if let Err(Stop::Rule(error)) = &result {
            self.dead = Some(error.clone());
        }
        result
    }

    /// How many bytes of `data` are used up.
    fn parse<S: Sink<Value = V>>(
        &mut self,
        data: &[u8],
        sink: &mut S,
        done: &mut Vec<V>,
    ) -> Result<usize, Stop<S::Failure>> {
        let mut at = 0;
        while let Some((size, value)) = self.walk.step(&data[at..], sink)? {
            at += size;
            done.extend(value);
        }
        Ok(at)
    }
}

/// The reply at the front of `data`, and its size. `TRUNCATED` if it is not all there, `BAD_RESP`, `OVERSIZE`
/// for an array that no memory holds.
pub fn parse_reply<S: Sink>(data: &[u8], sink: &mut S) -> Result<(S::Value, usize), Stop<S::Failure>> {
    // The reply is all there already, so there is nothing to bound.
    let mut walk = Walk::new(usize::MAX);
    let mut at = 0;
    while let Some((size, value)) = walk.step(&data[at..], sink)? {
        at += size;
        if let Some(value) = value {
            return Ok((value, at));
        }
    }
    Err(Error::new(Code::Truncated, "the input ends inside a reply").into())
}
