//! Batches read piece by piece, against the same batches read at once.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;
use crate::batch::stamps::{each_stamp, each_stamp_by};
use crate::batch::{Header, find_time, validate_batches};
use crate::{Code, Result};

type Stamps = Result<Vec<(i64, i32)>, Code>;

fn stamps(batch: &[u8], limit: usize, step: usize) -> (Stamps, usize) {
    let header = Header::parse_only(batch).unwrap();
    let (mut seen, mut left) = (Vec::new(), limit);
    let result = each_stamp_by(&header, batch, &mut left, step, |stamp| {
        seen.push((stamp.timestamp_delta, stamp.offset_delta));
        Ok(ControlFlow::Continue(()))
    });
    (result.map(|()| seen).map_err(|error| error.code), left)
}

/// A batch around `payload`, compressed, that announces `count` records.
fn around(payload: &[u8], compression: Compression, count: i32) -> Vec<u8> {
    let mut batch = three(Compression::None);
    batch.truncate(61);
    crate::compression::compress(compression, payload, &mut batch);
    let batch = with(batch, 21, i16::from(compression.bits()).to_be_bytes());
    with(with(batch, 57, count.to_be_bytes()), 23, (count - 1).to_be_bytes())
}

#[test]
fn a_record_that_goes_over_pieces_is_passed_over() {
    let headers =
        vec![(vec![b'h'; 300], None), (vec![], Some(vec![b'v'; 5000])), (b"k".to_vec(), Some(vec![]))];
    let records = [
        (1000, None, None, headers.clone()),
        (1 << 40, Some(vec![0; 3 << 20]), Some(vec![1; 70_000]), headers),
        (7, Some(vec![]), Some(vec![b'x'; 2_000_000]), vec![]),
    ];
    for compression in Compression::ALL {
        let batch = build(&records, compression, 0, Origin::NONE);
        let whole = stamps(&batch, LIMIT, usize::MAX >> 1);
        assert_eq!(whole.0, Ok(vec![(0, 0), ((1 << 40) - 1000, 1), (-993, 2)]));
        for step in [1, 2, 3, 7, 64, 1000, 1 << 16, 1 << 20] {
            assert_eq!(stamps(&batch, LIMIT, step), whole, "{compression:?} {step}");
        }
        assert_eq!(validate_batches(&batch, LIMIT).unwrap()[0].header.max_timestamp, 1 << 40);
        assert_eq!(find_time(&batch, 1001, LIMIT, i64::MIN), Ok(Some((1, 1 << 40))));
        assert_eq!(find_time(&batch, 0, LIMIT, 2), Ok(Some((2, 7))));
    }
}

#[test]
fn what_a_search_does_not_need_is_not_decompressed() {
    let records: Vec<_> = (0..300_i64).map(|at| (at, None, Some(vec![at as u8; 40_000]), vec![])).collect();
    for compression in [Compression::Gzip, Compression::Lz4, Compression::Snappy] {
        let mut batch = build(&records, compression, 0, Origin::NONE);
        let middle = batch.len() * 3 / 4;
        batch.truncate(middle);
        let batch = sealed(batch);
        assert_eq!(validate_batches(&batch, LIMIT).unwrap_err().code, Code::CorruptCompression);
        assert_eq!(find_time(&batch, 3, LIMIT, i64::MIN), Ok(Some((3, 3))));
        assert_eq!(find_time(&batch, 3, 2 << 20, i64::MIN), Ok(Some((3, 3))), "nor does it count");
        assert_eq!(find_time(&batch, 299, LIMIT, i64::MIN).unwrap_err().code, Code::CorruptCompression);
    }
}

#[test]
fn an_error_of_decompression_wins_over_one_of_a_record() {
    let bad = [&[5, 0, 0, 0][..], &vec![0; 3 << 20]].concat(); // a length below zero, then zeros
    for compression in [Compression::Gzip, Compression::Zstd, Compression::Lz4, Compression::Snappy] {
        let batch = around(&bad, compression, 3);
        assert_eq!(validate_batches(&batch, LIMIT).unwrap_err().code, Code::BadRecord);
        assert_eq!(validate_batches(&batch, 2 << 20).unwrap_err().code, Code::DecompressionLimit);
        let cut = sealed(batch[..batch.len() - 1].to_vec());
        assert_eq!(validate_batches(&cut, LIMIT).unwrap_err().code, Code::CorruptCompression);
    }
}

#[test]
fn the_limit_is_for_all_batches_of_a_call() {
    let value = [(7, None, Some(vec![b'y'; 5000]), vec![])];
    for compression in [Compression::Gzip, Compression::Zstd, Compression::Lz4, Compression::Snappy] {
        let one = build(&value, compression, 0, Origin::NONE);
        let two = [&one[..], &one].concat();
        let size = LIMIT - stamps(&one, LIMIT, 100).1;
        assert!(validate_batches(&two, 2 * size).is_ok());
        assert_eq!(validate_batches(&two, 2 * size - 1).unwrap_err().code, Code::DecompressionLimit);
    }
    let plain = [three(Compression::None), three(Compression::None)].concat();
    assert!(validate_batches(&plain, 0).is_ok(), "what is not compressed does not count");
}

#[test]
fn a_batch_of_zeros_that_expands_a_thousand_times_is_taken() {
    let zeros = [(0, None, Some(vec![0; 50 << 20]), vec![])];
    for compression in [Compression::Gzip, Compression::Zstd] {
        let batch = build(&zeros, compression, 0, Origin::NONE);
        assert!(batch.len() * 900 < 50 << 20);
        assert_eq!(validate_batches(&batch, 51 << 20).unwrap()[0].header.count, 1);
        assert_eq!(validate_batches(&batch, 49 << 20).unwrap_err().code, Code::DecompressionLimit);
    }
}

#[test]
fn headers_over_pieces_are_counted() {
    let header = (Vec::new(), None);
    let records = [(0, None, None, vec![header; 700_000])];
    for compression in [Compression::Gzip, Compression::Zstd] {
        let batch = build(&records, compression, 0, Origin::NONE);
        assert!(validate_batches(&batch, LIMIT).is_ok());
        let mut seen = 0;
        let header = Header::parse_only(&batch).unwrap();
        each_stamp(&header, &batch, &mut LIMIT.clone(), |_| {
            seen += 1;
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        assert_eq!(seen, 1);
    }
}

proptest! {
    #[test]
    fn damaged_records_are_the_same_in_pieces(
        values: Vec<(Option<Vec<u8>>, Option<Vec<u8>>)>, which in 1..5_usize, at: prop::sample::Index,
        byte: u8, count in -1..4_i32, step in 1..40_usize, limit in prop_oneof![Just(LIMIT), 0..200_usize],
    ) {
        prop_assume!(!values.is_empty());
        let records: Vec<_> = values.iter().zip(0..).map(|((key, value), time)| {
            let headers = key.iter().map(|key| (key.clone(), value.clone())).collect();
            (time, key.clone(), value.clone(), headers)
        }).collect();
        let mut payload = build(&records, Compression::None, 0, Origin::NONE).split_off(61);
        let at = at.index(payload.len());
        payload[at] = byte;
        let batch = around(&payload, Compression::ALL[which], (values.len() as i32 + count).max(1));
        let (whole, left) = stamps(&batch, limit, usize::MAX >> 1);
        let (parts, left_of_parts) = stamps(&batch, limit, step);
        prop_assert_eq!(&parts, &whole);
        prop_assert!(whole.is_err() || left == left_of_parts);
    }
}
