//! Where a record with a key goes, as Kafka's clients choose it.

/// The partition, out of `many`, for a key: murmur2 of it without the sign. Source: `BuiltInPartitioner` and
/// `Utils.murmur2` of Apache Kafka.
#[must_use]
pub fn partition_for(key: &[u8], many: usize) -> usize {
    (murmur2(key) & 0x7fff_ffff) as usize % many
}

fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let word = u32::from_le_bytes(*word).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (word ^ (word >> 24)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let last = rest.iter().rev().fold(0, |last, byte| last << 8 | u32::from(*byte));
        hash = (hash ^ last).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_kafka() {
        // From UtilsTest of Apache Kafka 3.9.
        for (key, hash) in [
            (&b"21"[..], -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key) as i32, hash);
        }
        // Of -973932308, whose lower 31 bits are 1173551340.
        assert_eq!(partition_for(b"21", 7), 1_173_551_340 % 7);
    }
}
