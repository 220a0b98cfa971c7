use super::*;
use crate::Code;
use crate::batch::{
    Header, NO_HEADERS, assign_offsets, batch_headers, find_time, recompress, slice_batches, validate_batches,
};

fn refusal(bytes: &[u8]) -> Code {
    validate_batches(bytes, LIMIT).unwrap_err().code
}

#[test]
fn a_good_batch_passes_whatever_its_compression() {
    for compression in Compression::ALL {
        let bytes = [three(compression), three(compression)].concat();
        let found = validate_batches(&bytes, LIMIT).unwrap();
        assert_eq!(found.iter().map(|batch| batch.start).collect::<Vec<_>>(), [0, bytes.len() / 2]);
        let header = found[1].header;
        assert_eq!(
            (header.count, header.last_offset(), header.first_timestamp, header.max_timestamp),
            (3, 2, 1000, 3000)
        );
        assert_eq!(header.compression(), compression.bits());
        assert_eq!(validate_batches(&[], LIMIT), Ok(vec![]));
    }
}

#[test]
fn the_header_rules() {
    let good = three(Compression::None);
    assert_eq!(refusal(&good[..16]), Code::Truncated);
    assert_eq!(refusal(&with(good.clone(), 16, [1])), Code::BadMagic);
    for length in [i32::MIN, -1, 0, 48] {
        let mut bad = good.clone();
        super::super::header::put(&mut bad, 8, length.to_be_bytes());
        assert_eq!(refusal(&bad), Code::BadLength);
    }
    assert_eq!(refusal(&good[..good.len() - 1]), Code::Truncated);
    assert_eq!(refusal(&[&good[..], b"more"].concat()), Code::Truncated);
    let mut flipped = good.clone();
    flipped[70] ^= 1;
    assert_eq!(refusal(&flipped), Code::BadCrc);
    for bit in 4..16 {
        assert_eq!(refusal(&with(good.clone(), 21, (1_u16 << bit).to_be_bytes())), Code::BadAttributes);
    }
    assert_eq!(refusal(&with(good.clone(), 21, 5_u16.to_be_bytes())), Code::UnknownCompression);
    assert_eq!(refusal(&with(good.clone(), 23, (-1_i32).to_be_bytes())), Code::BadOffset);
    assert_eq!(refusal(&with(good.clone(), 0, i64::MAX.to_be_bytes())), Code::BadOffset);
    assert_eq!(refusal(&with(good.clone(), 23, 5_i32.to_be_bytes())), Code::BadCount);
    for count in [i32::MIN, -1, 0, 2, 4, i32::MAX] {
        assert_eq!(refusal(&with(good.clone(), 57, count.to_be_bytes())), Code::BadCount);
    }
    assert_eq!(refusal(&with(good, 43, 7_i64.to_be_bytes())), Code::BadValue);
}

#[test]
fn an_idempotent_producer_needs_epoch_and_sequence() {
    let value = [(0, None, Some(vec![]), vec![])];
    let origin = Origin { producer_id: 7, producer_epoch: 0, base_sequence: 0, transactional: false };
    let good = build(&value, Compression::None, 0, origin);
    assert_eq!(validate_batches(&good, LIMIT).unwrap()[0].header.producer_id, 7);
    assert!(
        validate_batches(&with(good.clone(), 21, (1_u16 << 4).to_be_bytes()), LIMIT).unwrap()[0]
            .header
            .transactional()
    );
    assert_eq!(refusal(&with(good.clone(), 51, (-1_i16).to_be_bytes())), Code::BadValue);
    assert_eq!(refusal(&with(good, 53, (-1_i32).to_be_bytes())), Code::BadValue);
}

#[test]
fn the_record_rules() {
    // One record in eight bytes: length 7, attributes, time, offset, null key, value of one byte, no headers.
    let one = build(&[(0, None, Some(b"v".to_vec()), vec![])], Compression::None, 0, Origin::NONE);
    assert_eq!(one[61..], [14, 0, 0, 0, 1, 2, b'v', 0]);
    let bad = |at: usize, byte: u8| refusal(&with(one.clone(), 61 + at, [byte]));
    assert_eq!(bad(0, 12), Code::BadRecord); // shorter than its fields
    assert_eq!(bad(0, 16), Code::BadRecord); // longer than the batch
    assert_eq!(bad(0, 13), Code::BadRecord); // below zero
    assert_eq!(bad(2, 0x80), Code::BadRecord); // fields run on
    assert_eq!(bad(3, 2), Code::BadOffset);
    assert_eq!(bad(3, 1), Code::BadOffset);
    assert_eq!(bad(4, 3), Code::BadRecord); // key of -2 bytes
    assert_eq!(bad(5, 3), Code::BadRecord); // value of -2 bytes
    assert_eq!(bad(5, 4), Code::BadRecord); // value takes the header count
    assert_eq!(bad(7, 1), Code::BadRecord); // -1 headers
    assert_eq!(bad(7, 2), Code::BadRecord); // a header that is not there
    assert_eq!(refusal(&sealed([&one[..], &[0]].concat())), Code::BadRecord);
    assert_eq!(refusal(&sealed(one[..68].to_vec())), Code::BadRecord);
    assert_eq!(refusal(&with(with(one, 23, 1_i32.to_be_bytes()), 57, 2_i32.to_be_bytes())), Code::BadRecord);
}

#[test]
fn times_that_leave_64_bits_are_refused() {
    let two = build(&[(0, None, None, vec![]), (1, None, None, vec![])], Compression::None, 0, Origin::NONE);
    assert_eq!(refusal(&with(two.clone(), 27, i64::MAX.to_be_bytes())), Code::BadRecord);
    let found = validate_batches(&with(two, 27, (i64::MAX - 1).to_be_bytes()), LIMIT).unwrap();
    assert_eq!(found[0].header.max_timestamp, i64::MAX);
}

#[test]
fn the_true_max_timestamp_is_found_and_mended() {
    let mut batch = with(three(Compression::None), 35, 9_i64.to_be_bytes());
    assert_eq!(batch_headers(&batch, true)[0].header.max_timestamp, 9);
    assert_eq!(validate_batches(&batch, LIMIT).unwrap()[0].header.max_timestamp, 3000);
    assign_offsets(&mut batch, 5, 1, Some(3000), None).unwrap();
    assert_eq!(batch[17..], three(Compression::None)[17..]);
}

#[test]
fn assign_offsets_leaves_the_checksum_alone_unless_it_must() {
    let mut batch = three(Compression::Lz4);
    let before = batch.clone();
    assign_offsets(&mut batch, 1 << 40, 7, None, None).unwrap();
    assert_eq!(batch[16..], before[16..]);
    let header = validate_batches(&batch, LIMIT).unwrap()[0].header;
    assert_eq!((header.base_offset, header.leader_epoch, header.last_offset()), (1 << 40, 7, (1 << 40) + 2));

    assign_offsets(&mut batch, 0, 7, Some(1), Some(5000)).unwrap();
    let header = validate_batches(&batch, LIMIT).unwrap()[0].header;
    assert!(header.log_append_time() && header.max_timestamp == 5000 && header.first_timestamp == 1000);

    let as_it_was = batch.clone();
    assert_eq!(assign_offsets(&mut batch, i64::MAX - 1, 0, None, None).unwrap_err().code, Code::BadOffset);
    assert_eq!(batch, as_it_was);
    assert_eq!(assign_offsets(&mut batch[..80], 0, 0, None, None).unwrap_err().code, Code::Truncated);
    let mut longer = [&batch[..], &[0]].concat();
    assert_eq!(assign_offsets(&mut longer, 0, 0, None, None).unwrap_err().code, Code::TrailingBytes);
}

#[test]
fn headers_stop_where_the_log_stops_being_one() {
    let at = |offset: i64| {
        let mut batch = three(Compression::None);
        assign_offsets(&mut batch, offset, 0, None, None).unwrap();
        batch
    };
    let whole = [at(0), at(3), at(10)].concat();
    let starts =
        |data: &[u8], verify| batch_headers(data, verify).iter().map(|found| found.start).collect::<Vec<_>>();
    let size = at(0).len();
    assert_eq!(starts(&whole, true), [0, size, 2 * size]);
    for end in 0..whole.len() {
        assert_eq!(batch_headers(&whole[..end], true).len(), end / size);
    }
    let mut damaged = whole.clone();
    damaged[size + 80] ^= 1;
    assert_eq!((starts(&damaged, false).len(), starts(&damaged, true).len()), (3, 1));
    assert_eq!(starts(&[at(3), at(5)].concat(), true), [0]);
    assert_eq!(starts(&[at(3), at(5)].concat(), false), [0, size]);
    assert_eq!(starts(&[&whole[..], &[0; 100]].concat(), true).len(), 3);
}

#[test]
fn span_cuts_at_whole_batches() {
    let mut data = Vec::new();
    for offset in [10, 13, 20] {
        let mut batch = three(Compression::None);
        assign_offsets(&mut batch, offset, 0, None, None).unwrap();
        data.extend(batch);
    }
    let size = data.len() / 3;
    let all = usize::MAX;
    assert_eq!(slice_batches(&data, 0, i64::MAX, all), (0, 3 * size, 23));
    assert_eq!(slice_batches(&data, 12, i64::MAX, all), (0, 3 * size, 23));
    assert_eq!(slice_batches(&data, 13, 22, all), (size, 2 * size, 16));
    assert_eq!(slice_batches(&data, 16, 23, all), (2 * size, 3 * size, 23));
    assert_eq!(slice_batches(&data, 10, i64::MAX, 0), (0, size, 13));
    assert_eq!(slice_batches(&data, 11, i64::MAX, 2 * size), (0, 2 * size, 16));
    assert_eq!(slice_batches(&data, 11, i64::MAX, 2 * size - 1), (0, size, 13));
    assert_eq!(slice_batches(&data, 10, 12, all), (0, 0, 10));
    assert_eq!(slice_batches(&data, 23, i64::MAX, all), (0, 0, 23));
    assert_eq!(slice_batches(&data[..size - 1], 0, i64::MAX, all), (0, 0, 0));
    assert_eq!(slice_batches(b"", 4, i64::MAX, all), (0, 0, 4));
}

#[test]
fn recompression_keeps_everything_else() {
    let origin = Origin { producer_id: 5, producer_epoch: 1, base_sequence: 9, transactional: false };
    let value = [(7, None, Some(vec![b'y'; 5000]), vec![])];
    for from in Compression::ALL {
        for to in Compression::ALL {
            let mut batch = build(&value, from, 100, origin);
            assign_offsets(&mut batch, 200, 3, None, Some(44)).unwrap();
            let before = Header::parse_only(&batch).unwrap();
            let other = recompress(&batch, to, LIMIT).unwrap();
            let after = validate_batches(&other, LIMIT).unwrap()[0].header;
            let Header { size, crc, attributes, .. } = after;
            assert_eq!(after, Header { size, crc, attributes, ..before });
            assert_eq!(attributes, 1 << 3 | i16::from(to.bits()));
            assert_eq!(recompress(&other, from, LIMIT), Ok(batch));
        }
    }
    let batch = three(Compression::Zstd);
    assert_eq!(recompress(&batch, Compression::None, 100).unwrap_err().code, Code::DecompressionLimit);
}

#[test]
fn the_first_record_at_or_after_a_time() {
    for compression in Compression::ALL {
        let mut batch = three(compression);
        assign_offsets(&mut batch, 40, 0, None, None).unwrap();
        assert_eq!(find_time(&batch, i64::MIN, LIMIT, i64::MIN), Ok(Some((40, 1000))));
        assert_eq!(find_time(&batch, 1000, LIMIT, i64::MIN), Ok(Some((40, 1000))));
        assert_eq!(find_time(&batch, 1001, LIMIT, i64::MIN), Ok(Some((41, 3000))));
        assert_eq!(find_time(&batch, 3001, LIMIT, i64::MIN), Ok(None));
        assign_offsets(&mut batch, 40, 0, None, Some(5000)).unwrap();
        assert_eq!(find_time(&batch, 3001, LIMIT, i64::MIN), Ok(Some((40, 5000))));
        assert_eq!(find_time(&batch, 5001, LIMIT, i64::MIN), Ok(None));
    }
}

#[test]
fn a_batch_without_records_or_past_the_last_offset_is_not_built() {
    assert_eq!(
        Builder::new(0).finish(Compression::None, 0, -1, Origin::NONE).unwrap_err().code,
        Code::BadCount
    );
    let mut builder = Builder::new(0);
    builder.push(1, -5, None, None, NO_HEADERS).unwrap();
    assert_eq!(builder.push(2, i64::MAX, None, None, NO_HEADERS).unwrap_err().code, Code::OutOfRange);
    assert_eq!(
        builder.finish(Compression::None, i64::MAX, -1, Origin::NONE).unwrap_err().code,
        Code::BadOffset
    );
}
