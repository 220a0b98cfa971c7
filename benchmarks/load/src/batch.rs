//! Record batches v2: one is built before the run and sent again and again; fetched ones are walked by their headers.

use std::io::Write;

use crate::bytes::Writer;
use crate::{Compression, Outcome};

const HEADER: usize = 61;
const CRC_AT: usize = 17;
const CRC_FROM: usize = 21; // the checksum covers everything behind itself

/// An encoded batch and how many records it holds.
pub struct Batch {
    pub bytes: Vec<u8>,
    pub records: u32,
}

/// The values of the records of every batch, first one first: each of `record_bytes`.
pub fn values(record_bytes: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut letters = Letters(0x9e37_79b9_7f4a_7c15);
    std::iter::repeat_with(move || letters.by_ref().take(record_bytes).collect())
}

/// Records of `record_bytes` value bytes and no key, as many as fit into `batch_bytes` before compression, at least one.
/// `time`: of all of them, in milliseconds.
pub fn build(record_bytes: usize, batch_bytes: usize, compression: Compression, time: i64) -> Outcome<Batch> {
    let mut body = Writer::default();
    let mut records = 0_u32;
    for value in values(record_bytes) {
        let mut record = Writer::default();
        record.int8(0); // attributes
        record.signed(0); // timestamp delta
        record.signed(i64::from(records)); // offset delta
        record.signed(-1); // null key
        record.signed(record_bytes as i64);
        record.0.extend(value);
        record.signed(0); // headers
        if records > 0 && HEADER + body.0.len() + record.0.len() + 5 > batch_bytes {
            break;
        }
        body.signed(record.0.len() as i64);
        body.0.extend(record.0);
        records += 1;
    }
    let body = compress(body.0, compression)?;

    let mut batch = Writer(Vec::with_capacity(HEADER + body.len()));
    batch.int64(0); // base offset: the broker's to write
    batch.int32((HEADER - 12 + body.len()) as i32);
    batch.int32(-1); // leader epoch
    batch.int8(2); // magic
    batch.int32(0); // checksum, below
    batch.int16(compression as i16);
    batch.int32(records as i32 - 1);
    batch.int64(time);
    batch.int64(time);
    batch.int64(-1); // no producer id: not idempotent, so the same bytes may be sent again
    batch.int16(-1);
    batch.int32(-1);
    batch.int32(records as i32);
    batch.0.extend(body);
    let checksum = crc32c::crc32c(&batch.0[CRC_FROM..]);
    batch.0[CRC_AT..CRC_FROM].copy_from_slice(&checksum.to_be_bytes());
    Ok(Batch { bytes: batch.0, records })
}

fn compress(body: Vec<u8>, compression: Compression) -> Outcome<Vec<u8>> {
    match compression {
        Compression::None => Ok(body),
        Compression::Lz4 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(&body)?;
            Ok(encoder.finish()?)
        }
        Compression::Zstd => Ok(zstd::bulk::compress(&body, 3)?),
    }
}

/// Letters and digits without pattern (xorshift), so that compression has something, but not much, to find.
struct Letters(u64);

impl Iterator for Letters {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Some(b"abcdefghijklmnopqrstuvwxyz012345"[(self.0 >> 59) as usize])
    }
}

/// The findings of a walk over fetched batches.
pub struct Walk {
    pub bytes: usize,
    pub records: u64,
    pub next_offset: i64,
}

/// The whole batches at the front of `data`, which must begin with the batch that holds `wanted`. A cut-off batch at the
/// end is legal in Kafka and left out. `verify` recomputes every checksum.
pub fn walk(data: &[u8], wanted: i64, verify: bool) -> Outcome<Walk> {
    let mut found = Walk { bytes: 0, records: 0, next_offset: wanted };
    while let Some(header) = data.get(found.bytes..found.bytes + HEADER) {
        let base = i64::from_be_bytes(header[..8].try_into()?);
        let size = 12 + usize::try_from(i32::from_be_bytes(header[8..12].try_into()?))?;
        let last_delta = i32::from_be_bytes(header[23..27].try_into()?);
        let Some(batch) = data.get(found.bytes..found.bytes + size) else { break };
        let next = base + i64::from(last_delta) + 1;
        if header[16] != 2 || size < HEADER || next <= found.next_offset {
            return Err(format!(
                "at offset {}: a batch of magic {} up to {next}",
                found.next_offset, header[16]
            )
            .into());
        }
        let checksum = u32::from_be_bytes(header[CRC_AT..CRC_FROM].try_into()?);
        if verify && crc32c::crc32c(&batch[CRC_FROM..]) != checksum {
            return Err(format!("the batch at offset {base} fails its checksum").into());
        }
        found.bytes += size;
        found.records += u64::from(u32::from_be_bytes(header[57..61].try_into()?));
        found.next_offset = next;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_batch_walks() {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
            let batch = build(100, 4096, compression, 1).unwrap();
            assert!(batch.bytes.len() <= 4096 && batch.records > 30);
            let walked = walk(&batch.bytes, 0, true).unwrap();
            assert_eq!((walked.bytes, walked.records), (batch.bytes.len(), u64::from(batch.records)));
            assert_eq!(walked.next_offset, i64::from(batch.records));
        }
    }

    #[test]
    fn a_record_larger_than_the_batch_goes_alone() {
        assert_eq!(build(10_000, 100, Compression::None, 1).unwrap().records, 1);
    }

    #[test]
    fn a_flipped_bit_is_found_and_a_cut_batch_left_out() {
        let mut batch = build(100, 1000, Compression::None, 1).unwrap().bytes;
        assert_eq!(walk(&batch[..batch.len() - 1], 0, true).unwrap().records, 0);
        *batch.last_mut().unwrap() ^= 1;
        assert!(walk(&batch, 0, true).is_err());
        assert!(walk(&batch, 0, false).is_ok());
    }

    #[test]
    fn a_batch_below_the_wanted_offset_is_an_error() {
        let batch = build(100, 1000, Compression::None, 1).unwrap();
        assert!(walk(&batch.bytes, i64::from(batch.records), false).is_err());
    }
}
