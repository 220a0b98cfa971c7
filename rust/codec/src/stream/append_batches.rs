//! Whole batches as one transaction that appends them to a stream.

use crate::resp::{DIGITS, announce, decimal};
use crate::{Code, Error, Result, ids};

/// The log that is appended to, and what the scripts around its batches compare.
#[derive(Debug, Clone, Copy)]
pub struct Fence<'a> {
    /// The script in front of the batches, and the one behind them.
    pub scripts: [&'a [u8]; 2],
    /// The keys of the stream and of the state beside it.
    pub keys: [&'a [u8]; 2],
    /// The fencing token, and the end that the state has before.
    pub compared: [&'a [u8]; 2],
}

impl Fence<'_> {
    /// `MULTI`, and `EVAL guard 2 key state token end`.
    pub fn open(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n");
        self.eval(out, 0, 0);
    }

    /// `XADD key id batch DATA`, up to the bytes of the batch, which has so many; a line end comes behind them.
    ///
    /// The id is that of the offset `first`; without `bits` it is `<first>-1`. `OUT_OF_RANGE` for a negative offset, and
    /// for more than 62 `bits`.
    pub fn add(&self, out: &mut Vec<u8>, first: i64, bits: u32, size: usize) -> Result<()> {
        if first < 0 {
            return Error::fail(Code::OutOfRange, "a negative offset has no stream id");
        }
        let mask = ids::mask(bits)?;
        let (ms, sequence) = if bits == 0 { (first, 1) } else { (first >> bits, first & mask) };
        let (mut before, mut behind) = ([0; DIGITS], [0; DIGITS]);
        let (before, behind) = (decimal(ms as u64, &mut before), decimal(sequence as u64, &mut behind));
        out.extend_from_slice(b"*5\r\n$4\r\nXADD\r\n");
        bulk(out, self.keys[0]);
        announce(out, b'$', before.len() + 1 + behind.len());
        out.extend_from_slice(before);
        out.push(b'-');
        out.extend_from_slice(behind);
        out.extend_from_slice(b"\r\n$5\r\nbatch\r\n");
        announce(out, b'$', size);
        Ok(())
    }

    /// `EVAL close 2 key state token end` with the state's fields `end` and `totals` as they are afterwards, and `EXEC`.
    pub fn close(&self, out: &mut Vec<u8>, end: &[u8], totals: [(&str, i64); 3]) {
        self.eval(out, 1, 2 + 2 * totals.len());
        bulk(out, b"end");
        bulk(out, end);
        for (name, number) in totals {
            bulk(out, name.as_bytes());
            let (sign, mut digits) = (&b"-"[..usize::from(number < 0)], [0; DIGITS]);
            let digits = decimal(number.unsigned_abs(), &mut digits);
            announce(out, b'$', sign.len() + digits.len());
            out.extend_from_slice(sign);
            out.extend_from_slice(digits);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"*1\r\n$4\r\nEXEC\r\n");
    }

    fn eval(&self, out: &mut Vec<u8>, script: usize, more: usize) {
        announce(out, b'*', 7 + more);
        out.extend_from_slice(b"$4\r\nEVAL\r\n");
        bulk(out, self.scripts[script]);
        out.extend_from_slice(b"$1\r\n2\r\n");
        for word in self.keys.iter().chain(&self.compared) {
            bulk(out, word);
        }
    }
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    announce(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
