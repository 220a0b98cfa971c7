//! Kafka's wire primitives: a buffer to write them into, and a checked cursor to read them from.

use crate::Outcome;

/// Appends Kafka's primitives (all big-endian) to a growing buffer.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn int8(&mut self, value: i8) {
        self.0.extend(value.to_be_bytes());
    }

    pub fn int16(&mut self, value: i16) {
        self.0.extend(value.to_be_bytes());
    }

    pub fn int32(&mut self, value: i32) {
        self.0.extend(value.to_be_bytes());
    }

    pub fn int64(&mut self, value: i64) {
        self.0.extend(value.to_be_bytes());
    }

    /// Kafka's `UNSIGNED_VARINT`: seven bits a byte, lowest first.
    pub fn unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Kafka's VARINT and VARLONG: zigzag, so that small negatives stay short.
    pub fn signed(&mut self, value: i64) {
        self.unsigned(((value << 1) ^ (value >> 63)) as u64);
    }

    pub fn string(&mut self, value: &str) {
        self.int16(value.len() as i16);
        self.0.extend(value.as_bytes());
    }

    pub fn compact_string(&mut self, value: &str) {
        self.unsigned(value.len() as u64 + 1);
        self.0.extend(value.as_bytes());
    }
}

/// Reads Kafka's primitives from the front of a slice; running out of bytes is an error, never a panic.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, size: usize) -> Outcome<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(size).ok_or("the answer ends before its fields do")?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        Ok(self.take(N)?.try_into()?)
    }

    pub fn int16(&mut self) -> Outcome<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub fn int32(&mut self) -> Outcome<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub fn int64(&mut self) -> Outcome<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub fn unsigned(&mut self) -> Outcome<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a varint of more than ten bytes".into())
    }

    /// A `COMPACT_STRING`, `COMPACT_BYTES` or `COMPACT_RECORDS`; null reads as empty.
    pub fn compact_bytes(&mut self) -> Outcome<&'a [u8]> {
        let size = self.unsigned()?;
        self.take(usize::try_from(size.saturating_sub(1))?)
    }

    /// A STRING or `NULLABLE_STRING`; null reads as empty.
    pub fn string(&mut self) -> Outcome<&'a [u8]> {
        let size = self.int16()?;
        self.take(size.max(0) as usize)
    }

    /// Skip a tagged-field section.
    pub fn tags(&mut self) -> Outcome<()> {
        for _ in 0..self.unsigned()? {
            self.unsigned()?;
            let size = self.unsigned()?;
            self.take(usize::try_from(size)?)?;
        }
        Ok(())
    }

    /// The answer must be used up: leftover bytes mean that it was read wrongly.
    pub fn finish(self) -> Outcome<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(format!("{} bytes left over in an answer", self.0.len()).into())
        }
    }
}
