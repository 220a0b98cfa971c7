use proptest::prelude::*;

use super::message::checksum;
use super::*;
use crate::batch::{Origin, assign_offsets, batch_headers};
use crate::columns::{Columns, build_batch, to_columns};
use crate::compression::{Compression, compress};
use crate::{Code, Result};

const LIMIT: usize = 1 << 24;
const NOW: i64 = 777;

/// One message with its LENGTH, of magic 1 with these attributes.
fn message(attributes: u8, payload: &[u8]) -> Vec<u8> {
    framed(&[&[1, attributes][..], &checksum(payload).to_be_bytes(), payload].concat())
}

fn magic_0(payload: &[u8]) -> Vec<u8> {
    framed(&[&[0][..], &checksum(payload).to_be_bytes(), payload].concat())
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as i32).to_be_bytes()[..], message].concat()
}

fn plain(payload: &[u8]) -> Vec<u8> {
    message(0, payload)
}

fn wrapper(compression: Compression, set: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    compress(compression, set, &mut packed);
    message(compression.bits(), &packed)
}

/// The set as it lies in a log from offset `base` on.
fn stored(set: &[u8], base: i64) -> Vec<u8> {
    let mut log = Vec::new();
    let mut next = base;
    for mut batch in up_convert(set, LIMIT, LIMIT, 1 << 16).unwrap() {
        assign_offsets(&mut batch.bytes, next, 3, None, Some(NOW)).unwrap();
        next += batch.span;
        log.extend(batch.bytes);
    }
    log
}

/// What 0.7 is given of a log.
fn served(log: &[u8], start: i64, end: i64) -> Result<Vec<u8>> {
    let mut bytes = log.to_vec();
    let made = down_convert(&mut bytes, start, end)?;
    bytes.truncate(made);
    Ok(bytes)
}

fn values(log: &[u8], offset: i64) -> Columns {
    let (batches, _) = to_values(log, offset, LIMIT, LIMIT).unwrap();
    to_columns(&batches, LIMIT).unwrap()
}

fn refusal(set: &[u8]) -> Code {
    up_convert(set, 100, LIMIT, LIMIT).unwrap_err().code
}

#[test]
fn what_was_sent_is_served_byte_for_byte() {
    let set =
        [plain(b"hello"), magic_0(b""), message(4, b"x"), wrapper(Compression::Gzip, &plain(b"in"))].concat();
    let log = stored(&set, 1000);
    let end = 1000 + set.len() as i64;
    assert_eq!(batch_headers(&log, true).last().unwrap().header.last_offset() + 1, end);
    assert_eq!(served(&log, 1000, end).unwrap(), set);
    for from in 0..set.len() {
        for to in from..=set.len() {
            let got = served(&log, 1000 + from as i64, 1000 + to as i64).unwrap();
            assert_eq!(got, set[from..to], "{from} to {to}");
        }
    }
    assert_eq!(served(&log, 999, end), Ok(vec![]));
    assert_eq!(served(&log, end, end + 5), Ok(vec![]));
    assert_eq!(served(&log, end, end - 5), Ok(vec![]));
}

#[test]
fn a_gap_ends_what_is_served() {
    let log = [stored(&plain(b"one"), 0), stored(&plain(b"two"), 20)].concat();
    assert_eq!(served(&log, 0, 100).unwrap(), plain(b"one"));
    assert_eq!(served(&log, 13, 100), Ok(vec![]));
    assert_eq!(served(&log, 20, 100).unwrap(), plain(b"two"));
}

#[test]
fn a_set_becomes_batches_of_about_a_size() {
    let set = plain(&[7; 90]).repeat(10);
    let batches = up_convert(&set, 100, LIMIT, 300).unwrap();
    assert_eq!(batches.iter().map(|batch| batch.span).collect::<Vec<_>>(), [200; 5]);
    assert_eq!(up_convert(&set, 100, LIMIT, 1).unwrap().len(), 10);
    assert_eq!(up_convert(b"", 100, LIMIT, 300), Ok(vec![]));
}

#[test]
fn a_tail_is_left_out_but_a_first_message_must_be_whole() {
    let whole = plain(b"whole");
    for end in 1..whole.len() {
        assert_eq!(refusal(&whole[..end]), Code::Truncated);
        let set = [&whole[..], &whole[..end]].concat();
        assert_eq!(up_convert(&set, 100, LIMIT, LIMIT), up_convert(&whole, 100, LIMIT, LIMIT));
    }
}

#[test]
fn every_rule_has_its_code() {
    for length in [i32::MIN, -1] {
        assert_eq!(refusal(&[&plain(b"a")[..], &length.to_be_bytes()].concat()), Code::BadLength);
    }
    assert_eq!(refusal(&framed(b"")), Code::BadLength);
    assert_eq!(refusal(&framed(&[0; 4])), Code::BadLength);
    assert_eq!(refusal(&framed(&[1, 0, 0, 0, 0])), Code::BadLength);
    assert_eq!(refusal(&framed(&[2, 0, 0, 0, 0, 0])), Code::BadMagic);
    assert_eq!(refusal(&plain(&[0; 101])), Code::Oversize);
    assert!(up_convert(&plain(&[0; 100]), 100, LIMIT, LIMIT).is_ok());
    let mut bad = plain(b"text");
    bad[10] ^= 1;
    assert_eq!(refusal(&bad), Code::BadCrc);
    assert_eq!(refusal(&[bad, plain(&[0; 101])].concat()), Code::BadCrc);
    assert_eq!(refusal(&message(3, b"text")), Code::UnknownCompression);
    assert_eq!(refusal(&message(1, b"text")), Code::CorruptCompression);
    // A size is looked at before what wrappers hold.
    assert_eq!(refusal(&[message(1, b"text"), plain(&[0; 101])].concat()), Code::Oversize);
    let mut raw = vec![0; 100];
    let size = snap::raw::Encoder::new().compress(&plain(b"raw"), &mut raw).unwrap();
    assert_eq!(refusal(&message(2, &raw[..size])), Code::CorruptCompression);
}

#[test]
fn what_wrappers_hold_is_checked_at_every_depth() {
    let mut bad = plain(b"text");
    bad[10] ^= 1;
    for compression in [Compression::Gzip, Compression::Snappy] {
        assert_eq!(refusal(&wrapper(compression, &bad)), Code::BadCrc);
        assert_eq!(refusal(&wrapper(compression, &wrapper(compression, &bad))), Code::BadCrc);
        assert_eq!(refusal(&wrapper(compression, &bad[..5])), Code::Truncated);
        assert!(up_convert(&wrapper(compression, &plain(&[0; 101])), 100, LIMIT, LIMIT).is_ok());
    }
    let nested = |depth| (0..depth).fold(plain(b"x"), |set, _| wrapper(Compression::Gzip, &set));
    assert!(up_convert(&nested(8), 1000, LIMIT, LIMIT).is_ok());
    assert_eq!(up_convert(&nested(9), 1000, LIMIT, LIMIT).unwrap_err().code, Code::NestedCompression);
    let bomb = (0..3).fold(plain(&vec![0; 8 << 20]), |set, _| wrapper(Compression::Gzip, &set));
    assert_eq!(up_convert(&bomb, LIMIT, 1 << 30, LIMIT).unwrap_err().code, Code::DecompressionLimit);
    let two = wrapper(Compression::Gzip, &plain(&[0; 1000])).repeat(2);
    assert_eq!(up_convert(&two, 100, 2019, LIMIT).unwrap_err().code, Code::DecompressionLimit);
    assert!(up_convert(&two, 100, 2020, LIMIT).is_ok());
}

#[test]
fn what_replaces_wrappers_is_bounded() {
    let wrapper = wrapper(Compression::Gzip, &plain(b"").repeat(100_000)); // replaced by its 1,000,000 bytes
    let converted = |many| up_convert(&wrapper.repeat(many), LIMIT, 1 << 30, LIMIT);
    assert_eq!(converted(8).unwrap().iter().map(|batch| batch.span).sum::<i64>(), 8_000_000);
    assert_eq!(converted(9).unwrap_err().code, Code::DecompressionLimit);
}

#[test]
fn values_have_the_offsets_of_their_messages_and_the_time_of_append() {
    let inner = [magic_0(b"b"), wrapper(Compression::Snappy, &[plain(b"c"), plain(b"d")].concat())].concat();
    let gzip = wrapper(Compression::Gzip, &inner);
    let log = stored(&[&plain(b"a")[..], &gzip, &plain(b"e")].concat(), 100);
    let got = values(&log, 0);
    let last = 111 + gzip.len() as i64;
    assert_eq!((got.offset, &got.value.data[..]), (vec![100, 111, 112, 113, last], &b"abcde"[..]));
    assert_eq!((got.timestamp, got.key.valid), (vec![NOW; 5], vec![0; 5]));
    // From inside of a wrapper: what is behind it, or its last one, so that a reader comes to know what is next.
    assert_eq!(values(&log, 105).value.data, b"abcde");
    assert_eq!(values(&log, 112).value.data, b"cde");
    assert_eq!(values(&log, 114).value.data, b"de");
    assert_eq!(values(&log, last + 1).value.data, b"e");
    let batches = to_values(&log, 114, LIMIT, LIMIT).unwrap().0;
    assert_eq!(batch_headers(&batches, true)[0].header.last_offset() + 1, last);
}

#[test]
fn a_wrapper_is_read_in_parts_too() {
    let set: Vec<u8> = (0..50_u8).flat_map(|n| plain(&[n; 40])).collect();
    let log = stored(&wrapper(Compression::Gzip, &set), 7);
    let end = batch_headers(&log, true)[0].header.last_offset() + 1;
    for most in [0, 100, 300, 5000] {
        let (mut at, mut got) = (7, Vec::new());
        while at < end {
            let (batches, next) = to_values(&log, at, most, LIMIT).unwrap();
            assert!(batches.len() <= most.max(140) && next > at);
            got.extend(to_columns(&batches, LIMIT).unwrap().value.data);
            at = next;
        }
        assert_eq!(got, (0..50_u8).flat_map(|n| [n; 40]).collect::<Vec<_>>());
    }
    assert_eq!(to_values(&log, 7, LIMIT, 100).unwrap_err().code, Code::DecompressionLimit);
    let both = [stored(&plain(b""), -3), log].concat();
    assert_eq!(to_values(&both[..], 0, LIMIT, 100).unwrap().1, 7);
}

#[test]
fn an_empty_wrapper_is_stored_and_passed_over() {
    let empty = wrapper(Compression::Gzip, b"");
    let log = stored(&[&empty[..], &plain(b"a")].concat(), 0);
    assert_eq!(values(&log, 0).offset, [empty.len() as i64]);
    assert_eq!(to_values(&stored(&empty, 0), 0, LIMIT, LIMIT), Ok((vec![], empty.len() as i64)));
}

#[test]
fn a_wrapper_of_more_messages_than_bytes_is_stored_as_what_it_holds() {
    let set = magic_0(b"").repeat(2000);
    let log = stored(&wrapper(Compression::Gzip, &set), 0);
    assert_eq!(served(&log, 0, i64::MAX).unwrap(), set);
    assert_eq!(values(&log, 0).offset.len(), 2000);
}

#[test]
fn a_producers_batch_becomes_messages_and_keeps_its_numbers() {
    let offsets: Vec<u8> = [0_i32, 5, 5].iter().flat_map(|n| n.to_ne_bytes()).collect();
    let columns = |key: &'static [u8], valid: &'static [u8]| {
        let times: Vec<u8> = [1_i64, 2].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let keys: Vec<u8> =
            [0_i32, key.len() as i32, key.len() as i32].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let named = [
            ("timestamp", &times[..]),
            ("key_offsets", &keys),
            ("key", key),
            ("key_valid", if key.is_empty() { &[0, 0] } else { &[1, 0] }),
            ("value_offsets", &offsets),
            ("value", b"hello"),
            ("value_valid", valid),
        ];
        build_batch(
            &named,
            Compression::Zstd,
            0,
            Origin { producer_id: 4, producer_epoch: 5, base_sequence: 6, transactional: false },
        )
        .unwrap()
    };
    let batch = to_messages(&columns(b"", &[1, 1]), LIMIT).unwrap();
    let set = [plain(b"hello"), plain(b"")].concat();
    assert_eq!(batch.span, set.len() as i64);
    assert_eq!(served(&batch.bytes, 0, 100).unwrap(), set);
    let header = batch_headers(&batch.bytes, true)[0].header;
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence, header.count), (4, 5, 6, 2));
    assert_eq!(to_messages(&columns(b"k", &[1, 1]), LIMIT).unwrap_err().code, Code::BadRecord);
    assert_eq!(to_messages(&columns(b"", &[1, 0]), LIMIT).unwrap_err().code, Code::BadRecord);
}

proptest! {
    #[test]
    fn damaged_sets_are_a_value_or_an_error(
        which in 0..3_usize, at: prop::sample::Index, flip in 1..=u8::MAX, mend: bool,
    ) {
        let inner = [plain(b"some text"), magic_0(b"some other text")].concat();
        let mut set = if which == 0 { inner } else { wrapper(Compression::ALL[which], &inner) };
        let at = at.index(set.len());
        set[at] ^= flip;
        if mend && at >= 10 {
            let crc = checksum(&set[10..]);
            set[6..10].copy_from_slice(&crc.to_be_bytes());
        }
        if up_convert(&set, LIMIT, LIMIT, LIMIT).is_ok() {
            let log = stored(&set, 9);
            prop_assert!(to_columns(&to_values(&log, 9, LIMIT, LIMIT).unwrap().0, LIMIT).is_ok());
        }
    }

    #[test]
    fn random_bytes_are_a_value_or_an_error(bytes: Vec<u8>, offset: i64, end: i64) {
        let _ = up_convert(&bytes, LIMIT, LIMIT, LIMIT);
        let _ = to_values(&bytes, offset, LIMIT, LIMIT);
        let _ = to_messages(&bytes, LIMIT);
        let _ = served(&bytes, offset, end);
    }
}
