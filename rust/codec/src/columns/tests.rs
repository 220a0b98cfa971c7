use proptest::prelude::*;

use super::*;
use crate::batch::{Origin, assign_offsets, validate_batches};

const LIMIT: usize = 1 << 24;
const NAMES: [&str; 14] = [
    "offset",
    "timestamp",
    "key_offsets",
    "key",
    "key_valid",
    "value_offsets",
    "value",
    "value_valid",
    "header_offsets",
    "header_key_offsets",
    "header_key",
    "header_value_offsets",
    "header_value",
    "header_value_valid",
];

fn longs(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn ints(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// As they are handed to `build_batch`, in the order of `NAMES`.
fn buffers(columns: &Columns) -> Vec<(&'static str, Vec<u8>)> {
    let Columns { offset, timestamp, key, value, header_offsets, header_key, header_value } = columns;
    let data = [
        longs(offset),
        longs(timestamp),
        ints(&key.offsets),
        key.data.clone(),
        key.valid.clone(),
        ints(&value.offsets),
        value.data.clone(),
        value.valid.clone(),
        ints(header_offsets),
        ints(&header_key.offsets),
        header_key.data.clone(),
        ints(&header_value.offsets),
        header_value.data.clone(),
        header_value.valid.clone(),
    ];
    NAMES.into_iter().zip(data).collect()
}

fn put_together(buffers: &[(&str, Vec<u8>)], compression: Compression, base_offset: i64) -> Result<Vec<u8>> {
    let named: Vec<_> = buffers.iter().map(|(name, data)| (*name, &data[..])).collect();
    build_batch(&named, compression, base_offset, Origin::NONE)
}

/// Three records at 10, 11 and 15; the second has two headers, the third is a tombstone.
fn three() -> Columns {
    let mut columns = Columns { header_offsets: vec![0], ..Columns::default() };
    for (offset, timestamp, key, value) in [
        (10, 1000, None, Some(&b"one"[..])),
        (11, 900, Some(&b"k"[..]), Some(b"")),
        (15, 1100, Some(b""), None),
    ] {
        columns.offset.push(offset);
        columns.timestamp.push(timestamp);
        columns.key.push(key).unwrap();
        columns.value.push(value).unwrap();
    }
    for value in [Some(&b"v"[..]), None] {
        columns.header_key.push(Some(b"h")).unwrap();
        columns.header_value.push(value).unwrap();
    }
    columns.header_offsets.extend([0, 2, 2]);
    columns
}

/// With one buffer replaced, or taken away.
fn changed(name: &str, data: Option<Vec<u8>>) -> Code {
    let mut buffers = buffers(&three());
    buffers.retain(|(given, _)| data.is_some() || *given != name);
    if let (Some(data), Some(found)) = (data, buffers.iter_mut().find(|(given, _)| *given == name)) {
        found.1 = data;
    }
    put_together(&buffers, Compression::None, 10).unwrap_err().code
}

#[test]
fn columns_come_back_whatever_the_compression() {
    for compression in Compression::ALL {
        let batch = put_together(&buffers(&three()), compression, 10).unwrap();
        assert_eq!(to_columns(&batch, LIMIT), Ok(three()));
    }
}

#[test]
fn what_may_be_left_out_is_dense_or_null() {
    let mut few = buffers(&three());
    few.retain(|(name, _)| ["timestamp", "value_offsets", "value", "value_valid"].contains(name));
    let batch = put_together(&few, Compression::None, 7).unwrap();
    let header = validate_batches(&batch, LIMIT).unwrap()[0].header;
    assert_eq!((header.base_offset, header.leader_epoch, header.first_timestamp), (7, -1, 1000));
    let got = to_columns(&batch, LIMIT).unwrap();
    assert_eq!((got.offset, got.key.valid, got.header_offsets), (vec![7, 8, 9], vec![0; 3], vec![0; 4]));
}

#[test]
fn columns_that_disagree_are_refused() {
    for name in NAMES.into_iter().filter(|name| *name != "offset") {
        assert_eq!(changed(name, None), Code::BadColumns, "{name}");
    }
    for name in
        NAMES.into_iter().filter(|name| !["key", "value", "header_key", "header_value"].contains(name))
    {
        assert_eq!(changed(name, Some(vec![0; 8 * 17])), Code::BadColumns, "{name}");
        assert_eq!(changed(name, Some(vec![])), Code::BadColumns, "{name}");
    }
    assert_eq!(changed("timestamp", Some(vec![0; 23])), Code::BadColumns);
    assert_eq!(changed("value_offsets", Some(ints(&[0, 3, 2, 3]))), Code::BadColumns);
    assert_eq!(changed("value_offsets", Some(ints(&[-1, 3, 3, 3]))), Code::BadColumns);
    assert_eq!(changed("value_offsets", Some(ints(&[0, 3, 3, 4]))), Code::BadColumns);
    assert_eq!(changed("header_offsets", Some(ints(&[0, 0, 2, 3]))), Code::BadColumns);
    let mut unknown = buffers(&three());
    unknown.push(("keys", vec![]));
    assert_eq!(put_together(&unknown, Compression::None, 10).unwrap_err().code, Code::BadColumns);
}

#[test]
fn offsets_rise_within_31_bits_above_the_base() {
    for offsets in [[9, 11, 15], [10, 10, 15], [11, 10, 15], [10, 11, 10 + (1 << 31)], [i64::MIN, 11, 15]] {
        assert_eq!(changed("offset", Some(longs(&offsets))), Code::BadOffset);
    }
    let mut far = buffers(&three());
    far[0].1 = longs(&[10, 11, 10 + i64::from(i32::MAX)]);
    let batch = put_together(&far, Compression::None, 10).unwrap();
    assert_eq!(to_columns(&batch, LIMIT).unwrap().offset[2], 10 + i64::from(i32::MAX));
    assert_eq!(changed("timestamp", Some(longs(&[i64::MIN, 0, 1]))), Code::OutOfRange);
}

#[test]
fn no_records_make_no_batch() {
    let none = buffers(&Columns { header_offsets: vec![0], ..Columns::default() });
    assert_eq!(put_together(&none, Compression::None, 0).unwrap_err().code, Code::BadCount);
}

#[test]
fn batches_add_up_and_control_batches_do_not() {
    let batch = put_together(&buffers(&three()), Compression::Lz4, 10).unwrap();
    let mut control = batch.clone();
    control[22] |= 1 << 5;
    let mut stamped = batch.clone();
    assign_offsets(&mut stamped, 20, 0, None, Some(77)).unwrap();
    let got = to_columns(&[&batch[..], &control, &stamped].concat(), LIMIT).unwrap();
    assert_eq!(got.offset, [10, 11, 15, 20, 21, 25]);
    assert_eq!(got.timestamp, [1000, 900, 1100, 77, 77, 77]);
    assert_eq!(got.header_offsets, [0, 0, 2, 2, 2, 4, 4]);
    assert_eq!(to_columns(&batch[..80], LIMIT).unwrap_err().code, Code::Truncated);
}

#[test]
fn the_limit_is_for_all_batches_together() {
    let plain = put_together(&buffers(&three()), Compression::None, 10).unwrap();
    let size = plain.len() - crate::batch::HEADER_SIZE;
    let packed = put_together(&buffers(&three()), Compression::Zstd, 10).unwrap();
    let two = [&packed[..], &packed].concat();
    assert!(to_columns(&two, 2 * size).is_ok());
    assert_eq!(to_columns(&two, 2 * size - 1).unwrap_err().code, Code::DecompressionLimit);
    assert!(to_columns(&plain, 0).is_ok());
}

proptest! {
    #[test]
    fn any_columns_come_back(
        rows in prop::collection::vec((0..1000_i64, any::<i32>(), any::<Option<Vec<u8>>>(), any::<Option<Vec<u8>>>()), 1..30),
        headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
        which in 0..5_usize,
    ) {
        let mut given = Columns { header_offsets: vec![0], ..Columns::default() };
        let mut offset = -1;
        for (place, (step, timestamp, key, value)) in rows.iter().enumerate() {
            offset += 1 + step;
            given.offset.push(offset);
            given.timestamp.push(i64::from(*timestamp));
            given.key.push(key.as_deref()).unwrap();
            given.value.push(value.as_deref()).unwrap();
            if place == 0 {
                for (key, value) in &headers {
                    given.header_key.push(Some(key)).unwrap();
                    given.header_value.push(value.as_deref()).unwrap();
                }
            }
            given.header_offsets.push(headers.len() as i32);
        }
        let batch = put_together(&buffers(&given), Compression::ALL[which], 0).unwrap();
        prop_assert_eq!(to_columns(&batch, LIMIT), Ok(given));
    }
}
