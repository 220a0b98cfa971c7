//! Variable-length integers: 7 bits a byte, lowest first, the top bit says that more follow.
//!
//! Overlong forms whose value still fits are accepted, as Kafka does; a last byte with bits beyond the
//! type's width is not. Source: `ByteUtils` of Apache Kafka, and the Protocol Buffers encoding it takes after.

use crate::{Code, Error, Result};

/// Most bytes of a 32-bit varint.
pub const MAX_32: usize = 5;
/// Most bytes of a 64-bit varint.
pub const MAX_64: usize = 10;

/// An unsigned 32-bit integer at the front of `data`, and how many bytes it takes.
/// `TRUNCATED`, `VARINT_OVERFLOW`.
#[inline]
pub fn read_u32(data: &[u8]) -> Result<(u32, usize)> {
    match data.first() {
        Some(&byte) if byte < 0x80 => Ok((u32::from(byte), 1)),
        _ => read_long(data, MAX_32, 0x0f).map(|(value, size)| (value as u32, size)),
    }
}

/// An unsigned 64-bit integer at the front of `data`, and how many bytes it takes.
/// `TRUNCATED`, `VARINT_OVERFLOW`.
#[inline]
pub fn read_u64(data: &[u8]) -> Result<(u64, usize)> {
    match data.first() {
        Some(&byte) if byte < 0x80 => Ok((u64::from(byte), 1)),
        _ => read_long(data, MAX_64, 0x01),
    }
}

/// As [`read_u32`], for the zigzag form of a signed integer.
#[inline]
pub fn read_i32(data: &[u8]) -> Result<(i32, usize)> {
    let (raw, size) = read_u32(data)?;
    Ok(((raw >> 1) as i32 ^ -((raw & 1) as i32), size))
}

/// As [`read_u64`], for the zigzag form of a signed integer.
#[inline]
pub fn read_i64(data: &[u8]) -> Result<(i64, usize)> {
    let (raw, size) = read_u64(data)?;
    Ok(((raw >> 1) as i64 ^ -((raw & 1) as i64), size))
}

/// `last_mask`: the bits that the last possible byte may have.
fn read_long(data: &[u8], most: usize, last_mask: u8) -> Result<(u64, usize)> {
    let mut value = 0_u64;
    for (at, &byte) in data.iter().take(most).enumerate() {
        if at + 1 == most && byte & !last_mask != 0 {
            return Error::fail(Code::VarintOverflow, "a varint is wider than its type");
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Ok((value, at + 1));
        }
    }
    Error::fail(Code::Truncated, "the input ends inside a varint")
}

/// Append an unsigned 32-bit integer in its shortest form.
#[inline]
pub fn write_u32(out: &mut Vec<u8>, value: u32) {
    write_u64(out, u64::from(value));
}

/// Append an unsigned 64-bit integer in its shortest form.
#[inline]
pub fn write_u64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Append the zigzag form of a signed 32-bit integer.
#[inline]
pub fn write_i32(out: &mut Vec<u8>, value: i32) {
    write_u32(out, zigzag_32(value));
}

/// Append the zigzag form of a signed 64-bit integer.
#[inline]
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    write_u64(out, zigzag_64(value));
}

/// How many bytes [`write_u64`] appends.
#[must_use]
#[inline]
pub const fn size_u64(value: u64) -> usize {
    // Seven bits a byte, and zero takes one.
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// How many bytes [`write_i32`] appends.
#[must_use]
#[inline]
pub const fn size_i32(value: i32) -> usize {
    size_u64(zigzag_32(value) as u64)
}

/// How many bytes [`write_i64`] appends.
#[must_use]
#[inline]
pub const fn size_i64(value: i64) -> usize {
    size_u64(zigzag_64(value))
}

const fn zigzag_32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

const fn zigzag_64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(value: i64, tail: Vec<u8>) {
            let mut out = Vec::new();
            write_i64(&mut out, value);
            prop_assert_eq!(out.len(), size_i64(value));
            let size = out.len();
            out.extend(&tail);
            prop_assert_eq!(read_i64(&out), Ok((value, size)));
        }

        #[test]
        fn the_narrow_form_agrees_with_the_wide(value: i32) {
            let (mut narrow, mut wide) = (Vec::new(), Vec::new());
            write_i32(&mut narrow, value);
            write_i64(&mut wide, i64::from(value));
            prop_assert_eq!(&narrow, &wide);
            prop_assert_eq!(narrow.len(), size_i32(value));
            prop_assert_eq!(read_i32(&narrow), Ok((value, wide.len())));
        }

        #[test]
        fn every_prefix_is_truncated(value: u64) {
            let mut out = Vec::new();
            write_u64(&mut out, value);
            for end in 0..out.len() {
                prop_assert_eq!(read_u64(&out[..end]).unwrap_err().code, Code::Truncated);
            }
        }
    }

    #[test]
    fn overlong_forms_that_fit_are_accepted() {
        assert_eq!(read_u32(&[0x80, 0x80, 0x80, 0x80, 0x00]), Ok((0, 5)));
        assert_eq!(read_u64(&[0x81, 0x80, 0x00]), Ok((1, 3)));
    }

    #[test]
    fn surplus_bits_are_refused() {
        assert_eq!(read_u32(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok((u32::MAX, 5)));
        assert_eq!(read_u32(&[0xff, 0xff, 0xff, 0xff, 0x1f]).unwrap_err().code, Code::VarintOverflow);
        assert_eq!(read_u32(&[0x80; 6]).unwrap_err().code, Code::VarintOverflow);
        let mut wide = vec![0xff; 9];
        wide.push(0x01);
        assert_eq!(read_u64(&wide), Ok((u64::MAX, 10)));
        wide[9] = 0x02;
        assert_eq!(read_u64(&wide).unwrap_err().code, Code::VarintOverflow);
        assert_eq!(read_u64(&[0x80; 11]).unwrap_err().code, Code::VarintOverflow);
    }
}
