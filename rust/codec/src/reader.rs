//! A cursor that never reads past its input.

use crate::{Code, Error, Result, varint};

/// Reads big-endian values one after another. Every method raises `TRUNCATED` where the input ends too early.
#[derive(Debug, Clone)]
pub struct Reader<'d> {
    data: &'d [u8],
    at: usize,
}

impl<'d> Reader<'d> {
    /// A cursor at the start of `data`.
    #[must_use]
    pub fn new(data: &'d [u8]) -> Self {
        Self { data, at: 0 }
    }

    /// Where the cursor is, in bytes from the start.
    #[must_use]
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes left.
    #[must_use]
    #[inline]
    pub fn remaining(&self) -> usize {
        self.data.len() - self.at
    }

    /// The next `size` bytes.
    #[inline]
    pub fn take(&mut self, size: usize) -> Result<&'d [u8]> {
        if size > self.remaining() {
            return Error::fail(
                Code::Truncated,
                format!("{size} bytes are needed at {}, {} are left", self.at, self.remaining()),
            );
        }
        let bytes = &self.data[self.at..self.at + size];
        self.at += size;
        Ok(bytes)
    }

    /// All the bytes left, without moving.
    #[must_use]
    pub fn rest(&self) -> &'d [u8] {
        &self.data[self.at..]
    }

    /// A cursor over the next `size` bytes, which are skipped here. Its positions count from the same start.
    pub fn narrow(&mut self, size: usize) -> Result<Reader<'d>> {
        let from = self.at;
        self.take(size)?;
        Ok(Reader { data: &self.data[..self.at], at: from })
    }

    /// The next `N` bytes, as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some(bytes) = self.data[self.at..].first_chunk::<N>() else {
            return self.take(N).map(|_| [0; N]);
        };
        self.at += N;
        Ok(*bytes)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_be_bytes)
    }

    /// A signed byte.
    #[inline]
    pub fn i8(&mut self) -> Result<i8> {
        self.array().map(i8::from_be_bytes)
    }

    /// A signed 16-bit integer.
    #[inline]
    pub fn i16(&mut self) -> Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    /// An unsigned 16-bit integer.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A signed 32-bit integer.
    #[inline]
    pub fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// An unsigned 32-bit integer.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A signed 64-bit integer.
    #[inline]
    pub fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// A 64-bit IEEE 754 number.
    #[inline]
    pub fn f64(&mut self) -> Result<f64> {
        self.array().map(f64::from_be_bytes)
    }

    /// An unsigned 32-bit varint; also `VARINT_OVERFLOW`.
    #[inline]
    pub fn uvarint(&mut self) -> Result<u32> {
        let (value, size) = varint::read_u32(&self.data[self.at..])?;
        self.at += size;
        Ok(value)
    }

    /// A zigzag 32-bit varint; also `VARINT_OVERFLOW`.
    #[inline]
    pub fn varint(&mut self) -> Result<i32> {
        let (value, size) = varint::read_i32(&self.data[self.at..])?;
        self.at += size;
        Ok(value)
    }

    /// A zigzag 64-bit varint; also `VARINT_OVERFLOW`.
    #[inline]
    pub fn varlong(&mut self) -> Result<i64> {
        let (value, size) = varint::read_i64(&self.data[self.at..])?;
        self.at += size;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_and_stops_at_the_end() {
        let mut reader = Reader::new(&[1, 0, 2, 0xff, 0xff, 0xff, 0xfd, 3, 9, 9]);
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.i16(), Ok(2));
        assert_eq!(reader.i32(), Ok(-3));
        assert_eq!(reader.varint(), Ok(-2));
        assert_eq!((reader.position(), reader.remaining()), (8, 2));
        assert_eq!(reader.i64().unwrap_err().code, Code::Truncated);
        assert_eq!(reader.take(3).unwrap_err().code, Code::Truncated);
        assert_eq!(reader.take(2), Ok(&[9, 9][..]));
    }

    #[test]
    fn a_narrowed_reader_ends_early_and_counts_from_the_same_start() {
        let mut reader = Reader::new(&[1, 2, 3, 4]);
        reader.u8().unwrap();
        let mut inner = reader.narrow(2).unwrap();
        assert_eq!((inner.position(), inner.remaining()), (1, 2));
        assert_eq!(inner.i32().unwrap_err().code, Code::Truncated);
        assert_eq!(reader.u8(), Ok(4));
        assert_eq!(reader.narrow(1).unwrap_err().code, Code::Truncated);
    }
}
