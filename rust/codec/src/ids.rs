//! Offsets and Redis stream ids: an id is `ms-sequence`, an offset is `(ms << bits) | sequence`.

use crate::{Code, Error, Result};

/// Most bits a sequence may take: a millisecond's must remain.
const MOST_BITS: u32 = 62;

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
