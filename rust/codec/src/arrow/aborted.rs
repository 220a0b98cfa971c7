//! Transactions that were aborted, as a consumer of committed records has to leave them out.

use std::collections::HashSet;

use crate::batch::{Header, Records, payload, verify};
use crate::{Code, Error, Result};

/// The type in a control record's key that ends a transaction without effect; 1 is a commit.
const ABORT: [u8; 2] = [0, 0];

/// The aborted transactions of a Fetch answer, followed from batch to batch.
#[derive(Debug)]
pub(super) struct Aborted {
    /// (first offset, producer id), the first one last.
    ahead: Vec<(i64, i64)>,
    /// Producers inside of one now.
    open: HashSet<i64>,
}

impl Aborted {
    /// `transactions`: (producer id, first offset).
    pub(super) fn new(transactions: &[(i64, i64)]) -> Self {
        let mut ahead: Vec<_> = transactions.iter().map(|(producer, first)| (*first, *producer)).collect();
        ahead.sort_unstable_by(|one, other| other.cmp(one));
        Self { ahead, open: HashSet::new() }
    }

    /// Whether this batch, the next in order, belongs to one. A marker that ends one is read for it. Errors as those of
    /// reading its record, and `BAD_CRC`.
    pub(super) fn has(&mut self, header: &Header, bytes: &[u8], limit: usize) -> Result<bool> {
        if self.ahead.is_empty() && self.open.is_empty() {
            return Ok(false);
        }
        while let Some((_, producer)) = self.ahead.pop_if(|(first, _)| *first <= header.last_offset()) {
            self.open.insert(producer);
        }
        if !self.open.contains(&header.producer_id) {
            return Ok(false);
        }
        if header.control() && marks_abort(header, bytes, limit)? {
            self.open.remove(&header.producer_id);
        }
        Ok(header.transactional())
    }
}

/// The key of a control record: a version, then the type, 16 bits each.
fn marks_abort(header: &Header, bytes: &[u8], limit: usize) -> Result<bool> {
    verify(header, bytes)?;
    let payload = payload(header, bytes, limit)?;
    let Some(record) = Records::new(header, &payload)?.next().transpose()? else { return Ok(false) };
    match record.key {
        Some([_, _, kind @ ..]) if kind.len() >= 2 => Ok(kind[..2] == ABORT),
        _ => Error::fail(Code::BadRecord, "a control record's key has no type"),
    }
}
