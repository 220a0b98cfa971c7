//! Lines out of a byte stream, bounded while they arrive.

use memchr::memchr;

/// Bytes of PRODUCE lines that are given together at most; a line that is longer comes alone.
pub const RUN: usize = 64 * 1024;

/// Given in place of a line that is too long; nothing comes after it.
pub const OVER: &[u8] = b"\n";

/// Cuts a stream into lines, and PRODUCE lines that follow each other into runs.
///
/// A line is given without its end (`\n` or `\r\n`); a run is given with the ends of its lines. The lines of a run all
/// ask for `acks=all`, or none does.
#[derive(Debug, Clone)]
pub struct Lines {
    limit: usize,
    held: Vec<u8>,
    /// Bytes of `held` that were given.
    used: usize,
    /// Bytes behind them that are known to hold no line end.
    searched: usize,
    over: bool,
}

impl Lines {
    /// Lines of at most `limit` bytes each, without their ends.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, held: Vec::new(), used: 0, searched: 0, over: false }
    }

    /// Bytes that are held.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.held.len() - self.used
    }

    /// Give the lines and runs that `data` completes, `most` of them; the rest is held until the next call.
    pub fn feed(&mut self, data: &[u8], most: usize, mut give: impl FnMut(&[u8])) {
        if self.over {
            return;
        }
        let mut held = std::mem::take(&mut self.held);
        let from_held = !held.is_empty();
        if from_held && !data.is_empty() {
            held.drain(..std::mem::take(&mut self.used));
            held.extend_from_slice(data);
        }
        let all = if from_held { &held[..] } else { data };
        let mut at = self.used;
        for _ in 0..most {
            let Some((given, size)) = self.cut(&all[at..]) else { break };
            give(given);
            at += size;
            if self.over {
                self.used = 0;
                return;
            }
        }
        if from_held {
            (self.held, self.used) = if at == held.len() { (Vec::new(), 0) } else { (held, at) };
        } else {
            (self.held, self.used) = (data[at..].to_vec(), 0);
        }
    }

    /// The line or run at the front, and how many bytes it takes of the stream; None if its end is not there yet.
    fn cut<'d>(&mut self, rest: &'d [u8]) -> Option<(&'d [u8], usize)> {
        let Some(end) = memchr(b'\n', &rest[self.searched..]).map(|found| found + self.searched) else {
            self.searched = rest.len();
            self.over = content(rest).len() > self.limit;
            return self.over.then_some((OVER, rest.len()));
        };
        self.searched = 0;
        let line = content(&rest[..end]);
        if line.len() > self.limit {
            self.over = true;
            return Some((OVER, rest.len()));
        }
        if !is_produce(line) {
            return Some((line, end + 1));
        }
        let (all, mut size) = (asks_all(line), end + 1);
        while size < RUN
            && let Some(next) = memchr(b'\n', &rest[size..])
        {
            let line = content(&rest[size..size + next]);
            if size + next >= RUN || line.len() > self.limit || !is_produce(line) || asks_all(line) != all {
                break;
            }
            size += next + 1;
        }
        Some((&rest[..size], size))
    }
}

/// A line without the `\r` of its end.
pub(super) fn content(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Whether the last word asks that all replicas have the record.
pub(super) fn asks_all(line: &[u8]) -> bool {
    line.ends_with(b" acks=all")
}

fn is_produce(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"V1|") else { return false };
    memchr(b'|', rest).is_some_and(|bar| bar > 0 && rest[bar + 1..].starts_with(b"PRODUCE|"))
}
