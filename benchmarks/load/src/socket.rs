//! A blocking socket that must never be what limits the run: vectored writes, one large read buffer, no copies.

use std::io::{IoSlice, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::Outcome;

pub const BUFFER: usize = 4 << 20;
const LARGEST_ANSWER: usize = 128 << 20;
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// A connected socket and what was read from it but not yet taken.
pub struct Socket {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Socket {
    /// Connect to `HOST:PORT`; `size` bytes of read buffer to begin with.
    pub fn open(address: &str, size: usize) -> Outcome<Self> {
        let address = address.to_socket_addrs()?.next().ok_or("no such address")?;
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.set_write_timeout(Some(ANSWER_WITHIN))?;
        Ok(Self { stream, buffer: vec![0; size], start: 0, end: 0 })
    }

    /// The same socket, for another thread to write to; what it reads is lost to this one.
    pub fn other_half(&self) -> Outcome<Self> {
        Ok(Self { stream: self.stream.try_clone()?, buffer: Vec::new(), start: 0, end: 0 })
    }

    /// Write all parts, in one system call if the socket takes them.
    pub fn send(&mut self, mut parts: &mut [IoSlice<'_>]) -> Outcome<()> {
        while !parts.is_empty() {
            let written = self.stream.write_vectored(parts)?;
            if written == 0 {
                return Err("the server closed the connection".into());
            }
            IoSlice::advance_slices(&mut parts, written);
        }
        Ok(())
    }

    /// Bytes that were read and not yet taken.
    pub fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The first `size` bytes of what is unread; they count as read from now on.
    pub fn take(&mut self, size: usize) -> &[u8] {
        let from = self.start;
        self.start += size;
        &self.buffer[from..self.start]
    }

    /// Read once more, with room for `needed` unread bytes in all.
    pub fn fill(&mut self, needed: usize) -> Outcome<()> {
        if needed > LARGEST_ANSWER {
            return Err(format!("the server announced an answer of {needed} bytes").into());
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start + needed > self.buffer.len() || self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if needed > self.buffer.len() {
            self.buffer.resize(needed.next_power_of_two(), 0);
        }
        let read = self.stream.read(&mut self.buffer[self.end..])?;
        if read == 0 {
            return Err("the server closed the connection".into());
        }
        self.end += read;
        Ok(())
    }
}
