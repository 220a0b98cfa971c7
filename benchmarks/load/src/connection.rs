//! A connection that speaks Kafka: requests with rising numbers, answers cut by their length prefix.

use std::io::IoSlice;

use crate::Outcome;
use crate::bytes::Reader;
use crate::socket::{BUFFER, Socket};

const SMALL_BUFFER: usize = 4 << 10; // thousands of idle connections

/// One connection to a broker.
pub struct Connection {
    socket: Socket,
    correlation: i32,
}

impl Connection {
    pub fn open(address: &str) -> Outcome<Self> {
        Ok(Self { socket: Socket::open(address, BUFFER)?, correlation: 0 })
    }

    pub fn open_idle(address: &str) -> Outcome<Self> {
        Ok(Self { socket: Socket::open(address, SMALL_BUFFER)?, correlation: 0 })
    }

    /// The same connection, for another thread to send on.
    pub fn sending_half(&self) -> Outcome<Self> {
        Ok(Self { socket: self.socket.other_half()?, correlation: self.correlation })
    }

    /// The number that the next request must carry; its answer carries it back.
    pub fn next_correlation(&mut self) -> i32 {
        self.correlation = self.correlation.wrapping_add(1);
        self.correlation
    }

    /// Write all parts, in one system call if the socket takes them.
    pub fn send(&mut self, parts: &mut [IoSlice<'_>]) -> Outcome<()> {
        self.socket.send(parts)
    }

    /// Whether a whole answer has been read already, so that `receive` will not wait.
    pub fn has_answer(&self) -> bool {
        self.announced().is_some_and(|size| self.socket.unread().len() >= 4 + size)
    }

    /// The next answer, without its length prefix; waits for it.
    pub fn receive(&mut self) -> Outcome<&[u8]> {
        while !self.has_answer() {
            let needed = 4 + self.announced().unwrap_or(0);
            self.socket.fill(needed)?;
        }
        let size = self.announced().unwrap_or(0);
        Ok(&self.socket.take(4 + size)[4..])
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
        Some(u32::from_be_bytes(*self.socket.unread().first_chunk::<4>()?) as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
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
