//! A connection that speaks RESP2: whole replies are cut out of what was read, and not decoded any further.

use std::io::IoSlice;
use std::mem;

use crate::Outcome;
use crate::socket::{BUFFER, Socket};

const LONGEST_LINE: usize = 64 << 10;

/// One connection to a Redis server.
pub struct Resp {
    socket: Socket,
    scanner: Scanner,
}

impl Resp {
    pub fn open(address: &str) -> Outcome<Self> {
        Ok(Self { socket: Socket::open(address, BUFFER)?, scanner: Scanner::default() })
    }

    /// Write all parts, in one system call if the socket takes them.
    pub fn send(&mut self, parts: &mut [IoSlice<'_>]) -> Outcome<()> {
        self.socket.send(parts)
    }

    /// Whether the next `replies` replies have been read already, so that `receive` of as many will not wait.
    pub fn has(&mut self, replies: usize) -> Outcome<bool> {
        self.scanner.scan(self.socket.unread(), replies)
    }

    /// The next `replies` replies, back to back; waits for them. Errors: an error reply; nonsense.
    pub fn receive(&mut self, replies: usize) -> Outcome<&[u8]> {
        while !self.has(replies)? {
            let needed = self.scanner.at.max(self.socket.unread().len() + 1);
            self.socket.fill(needed)?;
        }
        let size = mem::take(&mut self.scanner.at);
        Ok(self.socket.take(size))
    }
}

/// Finds where a number of replies ends, going on where it stopped when more has been read.
#[derive(Default)]
struct Scanner {
    /// Up to here everything is understood; may lie behind what was read, at the end of a string still under way.
    at: usize,
    /// Replies and elements of arrays still to come.
    pending: usize,
}

impl Scanner {
    fn scan(&mut self, data: &[u8], replies: usize) -> Outcome<bool> {
        if self.at == 0 {
            self.pending = replies;
        }
        while self.pending > 0 {
            let Some(rest) = data.get(self.at..) else { return Ok(false) };
            let Some(length) = rest.iter().position(|&byte| byte == b'\n') else {
                let endless = rest.len() > LONGEST_LINE;
                return if endless { Err("a line of RESP without an end".into()) } else { Ok(false) };
            };
            let (kind, line) = rest[..length]
                .strip_suffix(b"\r")
                .and_then(<[u8]>::split_first)
                .ok_or("a line without CR")?;
            self.at += length + 1;
            self.pending -= 1;
            match kind {
                b'+' | b':' => {}
                b'$' => self.at += number(line)?.map_or(0, |size| size + 2),
                b'*' => self.pending += number(line)?.unwrap_or(0),
                b'-' => return Err(format!("Redis answered: {}", String::from_utf8_lossy(line)).into()),
                _ => return Err(format!("no RESP: a reply of kind {kind}").into()),
            }
        }
        Ok(self.at <= data.len())
    }
}

/// The number that a line is; None for -1, which is null.
fn number(line: &[u8]) -> Outcome<Option<usize>> {
    Ok(if line == b"-1" { None } else { Some(std::str::from_utf8(line)?.parse()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLIES: &[u8] = b"*2\r\n*1\r\n$3\r\na\r\n\r\n:5\r\n+OK\r\n$-1\r\n*0\r\n$0\r\n\r\n";

    #[test]
    fn replies_end_where_they_end_however_they_were_cut() {
        for step in 1..REPLIES.len() {
            let mut scanner = Scanner::default();
            let mut read = 0;
            while !scanner.scan(&REPLIES[..read], 5).unwrap() {
                assert!(read < REPLIES.len(), "no end was found");
                read = REPLIES.len().min(read + step);
            }
            assert_eq!((read, scanner.at), (REPLIES.len(), REPLIES.len()));
        }
    }

    #[test]
    fn an_error_reply_is_an_error_at_any_depth() {
        let refused = Scanner::default().scan(b"*2\r\n:1\r\n-ERR no\r\n", 1).unwrap_err();
        assert_eq!(refused.to_string(), "Redis answered: ERR no");
    }

    #[test]
    fn nonsense_is_an_error() {
        for data in [b"HTTP/1.1 200 OK\r\n".as_slice(), b"$x\r\n", b"$-2\r\n", b":1\n"] {
            assert!(Scanner::default().scan(data, 1).is_err());
        }
    }
}
