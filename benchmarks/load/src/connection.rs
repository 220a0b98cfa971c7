//! A blocking connection that must never be what limits the run: vectored writes, one large read buffer, no copies.

use std::io::{IoSlice, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::Outcome;
use crate::bytes::Reader;

const BUFFER: usize = 4 << 20;
const SMALL_BUFFER: usize = 4 << 10; // thousands of idle connections
const LARGEST_ANSWER: usize = 128 << 20;
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// One connection and what was read from it but not yet used.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    correlation: i32,
}

impl Connection {
    pub fn open(address: &str) -> Outcome<Self> {
        Self::with_buffer(address, BUFFER)
    }

    pub fn open_idle(address: &str) -> Outcome<Self> {
        Self::with_buffer(address, SMALL_BUFFER)
    }

    fn with_buffer(address: &str, size: usize) -> Outcome<Self> {
        let address = address.to_socket_addrs()?.next().ok_or("no such address")?;
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.set_write_timeout(Some(ANSWER_WITHIN))?;
        Ok(Self { stream, buffer: vec![0; size], start: 0, end: 0, correlation: 0 })
    }

    /// The number that the next request must carry; its answer carries it back.
    pub fn next_correlation(&mut self) -> i32 {
        self.correlation = self.correlation.wrapping_add(1);
        self.correlation
    }

    /// Write all parts, in one system call if the socket takes them.
    pub fn send(&mut self, mut parts: &mut [IoSlice<'_>]) -> Outcome<()> {
        while !parts.is_empty() {
            let written = self.stream.write_vectored(parts)?;
            if written == 0 {
                return Err("the broker closed the connection".into());
            }
            IoSlice::advance_slices(&mut parts, written);
        }
        Ok(())
    }

    /// Whether a whole answer has been read already, so that `receive` will not wait.
    pub fn has_answer(&self) -> bool {
        self.announced().is_some_and(|size| self.end - self.start >= 4 + size)
    }

    /// The next answer, without its length prefix; waits for it.
    pub fn receive(&mut self) -> Outcome<&[u8]> {
        while !self.has_answer() {
            self.fill()?;
        }
        let from = self.start + 4;
        self.start = from + self.announced().unwrap_or(0);
        Ok(&self.buffer[from..self.start])
    }

    /// Send one whole frame and give its answer behind the correlation id, which is checked.
    pub fn ask(&mut self, frame: &[u8], correlation: i32) -> Outcome<Reader<'_>> {
        self.send(&mut [IoSlice::new(frame)])?;
        let mut answer = Reader(self.receive()?);
        let answered = answer.int32()?;
        if answered != correlation {
            return Err(format!("asked {correlation}, answered {answered}").into());
        }
        Ok(answer)
    }

    fn announced(&self) -> Option<usize> {
        let prefix = self.buffer[self.start..self.end].first_chunk::<4>()?;
        Some(u32::from_be_bytes(*prefix) as usize)
    }

    fn fill(&mut self) -> Outcome<()> {
        let needed = 4 + self.announced().unwrap_or(0);
        if needed > LARGEST_ANSWER {
            return Err(format!("the broker announced an answer of {needed} bytes").into());
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start + needed > self.buffer.len() || self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if needed > self.buffer.len() {
            self.buffer.resize(needed, 0);
        }
        let read = self.stream.read(&mut self.buffer[self.end..])?;
        if read == 0 {
            return Err("the broker closed the connection".into());
        }
        self.end += read;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A connection to a peer that writes `bytes` in pieces of `piece` and closes.
    fn answered(bytes: Vec<u8>, piece: usize) -> Connection {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for part in bytes.chunks(piece) {
                stream.write_all(part).unwrap();
            }
        });
        Connection::open_idle(&address).unwrap()
    }

    #[test]
    fn answers_come_whole_however_they_were_cut() {
        let sizes = [0, 1, 3_000, 50_000, 7]; // some larger than the small buffer
        let mut bytes = Vec::new();
        for size in sizes {
            bytes.extend(u32::try_from(size).unwrap().to_be_bytes());
            bytes.extend(vec![size as u8; size]);
        }
        for piece in [1, 5, 4_096, 100_000] {
            let mut connection = answered(bytes.clone(), piece);
            for size in sizes {
                assert_eq!(connection.receive().unwrap(), vec![size as u8; size]);
            }
            assert!(connection.receive().is_err(), "closed");
        }
    }

    #[test]
    fn an_absurd_length_is_refused() {
        assert!(answered(vec![0x7f, 0xff, 0xff, 0xff], 4).receive().is_err());
    }
}
