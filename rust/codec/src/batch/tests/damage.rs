//! Any bytes: a value or an error, never a panic.

use proptest::prelude::*;

use super::*;
use crate::batch::{assign_offsets, batch_headers, find_time, recompress, slice_batches, validate_batches};
use crate::columns::to_columns;

fn records() -> impl Strategy<Value = Vec<Plain>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..200);
    let headers = prop::collection::vec((bytes(), prop::option::of(bytes())), 0..3);
    let times = -1..2_000_000_000_000_i64;
    prop::collection::vec((times, prop::option::of(bytes()), prop::option::of(bytes()), headers), 1..20)
}

fn enter_everywhere(bytes: &mut [u8]) {
    let _ = validate_batches(bytes, LIMIT);
    let _ = to_columns(bytes, LIMIT);
    let _ = find_time(bytes, 0, LIMIT, 1);
    let _ = recompress(bytes, Compression::None, LIMIT);
    for verify in [false, true] {
        let found = batch_headers(bytes, verify);
        assert!(found.iter().all(|batch| batch.start + batch.header.size <= bytes.len()));
    }
    let (from, to, _) = slice_batches(bytes, 0, i64::MAX, 1000);
    assert!(from <= to && to <= bytes.len());
    let _ = assign_offsets(bytes, 7, 1, Some(3), None);
}

proptest! {
    #[test]
    fn what_is_built_passes(records in records(), which in 0..5_usize, base in 0..i64::MAX / 2) {
        let batch = build(&records, Compression::ALL[which], base, Origin::NONE);
        let found = validate_batches(&batch, LIMIT).unwrap();
        prop_assert_eq!(found.len(), 1);
        let header = found[0].header;
        prop_assert_eq!(header.count as usize, records.len());
        prop_assert_eq!(Some(header.max_timestamp), records.iter().map(|record| record.0).max());
        prop_assert_eq!(header.size, batch.len());
    }

    #[test]
    fn damaged_batches_are_a_value_or_an_error(
        records in records(), which in 0..5_usize, at: prop::sample::Index, flip in 1..=u8::MAX, mend: bool,
    ) {
        let mut batch = build(&records, Compression::ALL[which], 0, Origin::NONE);
        let at = at.index(batch.len());
        batch[at] ^= flip;
        if mend {
            batch = sealed(batch);
        }
        enter_everywhere(&mut batch);
    }

    #[test]
    fn prefixes_and_random_bytes_are_a_value_or_an_error(mut bytes: Vec<u8>, end: prop::sample::Index) {
        enter_everywhere(&mut bytes);
        let batch = three(Compression::Snappy);
        let end = end.index(batch.len());
        prop_assert!(end == 0 || validate_batches(&batch[..end], LIMIT).is_err());
        enter_everywhere(&mut batch[..end].to_vec());
    }
}
