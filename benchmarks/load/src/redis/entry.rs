//! The records of one batch as entries of a stream: one entry each, or all of them one entry.

use super::command;
use crate::batch::{self, Batch};
use crate::options::{Layout, Options};
use crate::{Compression, Outcome};

/// Bytes of an id as written here: 13 digits of milliseconds, a hyphen, 4 digits of sequence. Always as many, so that
/// an id is written over the one before.
pub const ID: usize = 18;
const ID_LINE: &[u8] = b"$18\r\n";
const SEQUENCES: u64 = 9_000; // 1000 to 9999

/// Where the id lies in an entry as XRANGE gives it.
pub const REPLY_ID: usize = 4 + ID_LINE.len();

/// Every run makes the same entries, so that a run that reads knows what another one wrote.
pub const TIME: i64 = 1_750_000_000_000;

/// The batch whose records are written, as the Kafka side would send it.
pub fn batch(options: &Options) -> Outcome<Batch> {
    batch::build(options.record_bytes, options.batch_bytes, Compression::None, TIME)
}

/// Fields and values of each entry that the records of `batch` become: those that the broker gives a record without key
/// and headers.
pub fn entries(options: &Options, batch: &Batch) -> Vec<Vec<Vec<u8>>> {
    let time = TIME.to_string().into_bytes();
    match options.layout {
        Layout::Entries => batch::values(options.record_bytes)
            .take(batch.records as usize)
            .map(|value| vec![b"value".to_vec(), value, b"timestamp".to_vec(), time.clone()])
            .collect(),
        Layout::Batches => vec![vec![b"batch".to_vec(), batch.bytes.clone()]],
    }
}

/// The stream that connection `number` writes or reads. Each has its own: explicit ids must rise in one.
pub fn key(options: &Options, number: usize) -> String {
    format!("{}:{number}", options.topic)
}

/// The id of entry `number` of a stream, into `to`, which is `ID` bytes long.
pub fn write_id(to: &mut [u8], number: u64) {
    digits(&mut to[..13], TIME as u64 + number / SEQUENCES);
    to[13] = b'-';
    digits(&mut to[14..], 1_000 + number % SEQUENCES);
}

fn digits(to: &mut [u8], mut value: u64) {
    for digit in to.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// XADDs packed before the run; only their ids change.
pub struct Pipeline {
    pub bytes: Vec<u8>,
    ids: Vec<usize>,
}

impl Pipeline {
    pub fn pack(key: &str, entries: &[Vec<Vec<u8>>]) -> Self {
        let mut pipeline = Self { bytes: Vec::new(), ids: Vec::new() };
        for entry in entries {
            let bytes = &mut pipeline.bytes;
            command::begin(bytes, 3 + entry.len());
            command::add(bytes, b"XADD");
            command::add(bytes, key.as_bytes());
            pipeline.ids.push(command::add(bytes, &[0; ID]));
            for word in entry {
                command::add(bytes, word);
            }
        }
        pipeline
    }

    /// Give the commands the ids from `first` on.
    pub fn number(&mut self, first: u64) {
        for (number, &at) in (first..).zip(&self.ids) {
            write_id(&mut self.bytes[at..at + ID], number);
        }
    }

    /// Whether these replies are the ids of the commands, in order.
    pub fn is_answered_by(&self, replies: &[u8]) -> bool {
        let size = ID_LINE.len() + ID + 2;
        replies.len() == self.ids.len() * size
            && replies.chunks_exact(size).zip(&self.ids).all(|(reply, &at)| {
                reply[ID_LINE.len()..size - 2] == self.bytes[at..at + ID] && reply.starts_with(ID_LINE)
            })
    }
}

/// An entry as XRANGE gives it, whose id is filled in later, at `REPLY_ID`.
pub fn reply(entry: &[Vec<u8>]) -> Vec<u8> {
    let mut reply = b"*2\r\n".to_vec();
    command::add(&mut reply, &[0; ID]);
    reply.extend(command::pack(&entry.iter().map(Vec::as_slice).collect::<Vec<_>>()));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline() -> Pipeline {
        let entry = |value: &[u8]| vec![b"value".to_vec(), value.to_vec()];
        let mut pipeline = Pipeline::pack("t:0", &[entry(b"a"), entry(&[b'b'; 300])]);
        pipeline.number(SEQUENCES - 1);
        pipeline
    }

    #[test]
    fn ids_are_written_where_they_belong_and_rise_over_the_millisecond() {
        let packed = String::from_utf8(pipeline().bytes).unwrap();
        let (first, second) = packed.split_at(packed.rfind("*5\r\n").unwrap());
        assert_eq!(
            first,
            "*5\r\n$4\r\nXADD\r\n$3\r\nt:0\r\n$18\r\n1750000000000-9999\r\n$5\r\nvalue\r\n$1\r\na\r\n"
        );
        assert!(second.contains("$18\r\n1750000000001-1000\r\n"));
    }

    #[test]
    fn only_the_own_ids_are_the_answer() {
        let right = b"$18\r\n1750000000000-9999\r\n$18\r\n1750000000001-1000\r\n".to_vec();
        assert!(pipeline().is_answered_by(&right));
        assert!(!pipeline().is_answered_by(&right[..right.len() / 2]));
        let mut wrong = right;
        wrong[20] ^= 1;
        assert!(!pipeline().is_answered_by(&wrong));
    }

    #[test]
    fn the_place_of_an_id_in_a_reply() {
        let mut made = reply(&[b"value".to_vec(), b"a".to_vec()]);
        write_id(&mut made[REPLY_ID..REPLY_ID + ID], 0);
        assert_eq!(made, b"*2\r\n$18\r\n1750000000000-1000\r\n*2\r\n$5\r\nvalue\r\n$1\r\na\r\n");
    }
}
