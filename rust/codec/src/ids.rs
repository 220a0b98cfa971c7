//! Offsets and Redis stream ids: an id is `ms-sequence`, an offset is `(ms << bits) | sequence`.

use crate::{Code, Error, Result};

/// Most bits a sequence may take: a millisecond's must remain.
const MOST_BITS: u32 = 62;

/// A 64-bit integer in this machine's byte order, at any address.
pub type Long = [u8; 8];

/// The ids of `offsets`: ms and sequence of each, in turn.
/// `OUT_OF_RANGE` for a negative offset, and for more than 62 bits.
pub fn pack(offsets: &[Long], bits: u32) -> Result<Vec<i64>> {
    let mask = mask(bits)?;
    let mut ids = vec![0; 2 * offsets.len()];
    let mut all = 0;
    // Tested once at the end, so that the loop becomes vector instructions.
    for (id, offset) in ids.chunks_exact_mut(2).zip(offsets) {
        let offset = i64::from_ne_bytes(*offset);
        all |= offset;
        id[0] = offset >> bits;
        id[1] = offset & mask;
    }
    if all < 0 {
        return Error::fail(Code::OutOfRange, "an offset is negative");
    }
    Ok(ids)
}

/// The offsets of `ids`, given as ms and sequence in turn.
/// `OUT_OF_RANGE` for a sequence of 2^bits and more, a time of 2^(63 - bits) and more, negatives, and more than 62
/// bits; `BAD_LENGTH` for half an id.
pub fn unpack(ids: &[Long], bits: u32) -> Result<Vec<i64>> {
    let mask = mask(bits)?;
    let (ids, []) = ids.as_chunks::<2>() else {
        return Error::fail(Code::BadLength, "an id is a pair of numbers");
    };
    let highest = i64::MAX >> bits;
    let mut wrong = 0;
    let offset = |[ms, sequence]: &[Long; 2]| {
        let (ms, sequence) = (i64::from_ne_bytes(*ms), i64::from_ne_bytes(*sequence));
        wrong |= (ms & !highest) | (sequence & !mask);
        (ms << bits) | (sequence & mask)
    };
    let offsets = ids.iter().map(offset).collect();
    if wrong != 0 {
        return Error::fail(Code::OutOfRange, format!("an id does not fit {bits} bits of sequence"));
    }
    Ok(offsets)
}

/// The bits of a sequence. `OUT_OF_RANGE` for more than 62.
pub(crate) fn mask(bits: u32) -> Result<i64> {
    if bits > MOST_BITS {
        return Error::fail(
            Code::OutOfRange,
            format!("{bits} bits of sequence; at most {MOST_BITS} can be had"),
        );
    }
    Ok((1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn longs(numbers: &[i64]) -> Vec<Long> {
        numbers.iter().map(|number| number.to_ne_bytes()).collect()
    }

    fn pack_all(offsets: &[i64], bits: u32) -> Result<Vec<i64>> {
        pack(&longs(offsets), bits)
    }

    fn unpack_all(ids: &[i64], bits: u32) -> Result<Vec<i64>> {
        unpack(&longs(ids), bits)
    }

    proptest! {
        #[test]
        fn there_and_back(offsets in prop::collection::vec(0..=i64::MAX, 0..50), bits in 0..=MOST_BITS) {
            prop_assert_eq!(unpack_all(&pack_all(&offsets, bits).unwrap(), bits).unwrap(), offsets);
        }
    }

    #[test]
    fn the_worked_example() {
        assert_eq!(unpack_all(&[1_234_567_890_123, 0], 10), Ok(vec![1_264_197_519_485_952]));
        assert_eq!(pack_all(&[1_264_197_519_485_953], 10), Ok(vec![1_234_567_890_123, 1]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(pack_all(&[1, -1], 10).unwrap_err().code, Code::OutOfRange);
        assert_eq!(pack_all(&[1], 63).unwrap_err().code, Code::OutOfRange);
        for id in [[0, 1024], [1 << 53, 0], [-1, 0], [0, -1]] {
            assert_eq!(unpack_all(&id, 10).unwrap_err().code, Code::OutOfRange, "{id:?}");
        }
        assert_eq!(unpack_all(&[(1 << 53) - 1, 1023], 10), Ok(vec![i64::MAX]));
        assert_eq!(unpack_all(&[1], 10).unwrap_err().code, Code::BadLength);
    }
}
