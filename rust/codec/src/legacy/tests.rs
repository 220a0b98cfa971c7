use proptest::prelude::*;

use super::message::{Message, checksum, write};
use super::*;
use crate::Code;
use crate::batch::{assign_offsets, validate_batches};
use crate::columns::{Columns, to_columns};
use crate::compression::{Compression, compress};

const LIMIT: usize = 1 << 24;
const NOW: i64 = 777;

fn plain(magic: u8, timestamp: i64, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let message = Message {
        magic,
        compression: Compression::None,
        log_append_time: false,
        timestamp: Some(timestamp),
        key: None,
        value: Some(value),
    };
    write(&mut out, 5, &message).unwrap();
    out
}

/// `message` with other attributes, its checksum mended.
fn with_attributes(mut message: Vec<u8>, attributes: u8) -> Vec<u8> {
    message[17] = attributes;
    sealed(message)
}

fn sealed(mut message: Vec<u8>) -> Vec<u8> {
    let crc = checksum(&message[16..]);
    message[12..16].copy_from_slice(&crc.to_be_bytes());
    message
}

/// A wrapper of `set`, stamped 50.
fn wrapped(magic: u8, compression: Compression, set: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    compress(compression, set, &mut packed);
    with_attributes(plain(magic, 50, &packed), compression.bits())
}

fn up_converted(set: &[u8]) -> Columns {
    let batch = up_convert(set, LIMIT, NOW).unwrap();
    let found = validate_batches(&batch, LIMIT).unwrap();
    assert_eq!((found.len(), found[0].header.base_offset), (1, 0));
    to_columns(&batch, LIMIT).unwrap()
}

fn refusal(set: &[u8]) -> Code {
    up_convert(set, LIMIT, NOW).unwrap_err().code
}

#[test]
fn a_message_as_the_protocol_page_draws_it() {
    // offset 5, size 16, crc, magic 0, attributes 0, null key, value "hi"
    let bytes = plain(0, 0, b"hi");
    assert_eq!(bytes[..12], [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 16]);
    assert_eq!(bytes[16..], [0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2, b'h', b'i']);
    let timed = plain(1, 258, b"hi");
    assert_eq!(timed[8..12], [0, 0, 0, 24]);
    assert_eq!(timed[16..26], [1, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
}

#[test]
fn plain_messages_of_both_magics_are_up_converted_together() {
    let got = up_converted(&[plain(0, 9, b"old"), plain(1, 10, b"new"), plain(1, -1, b"")].concat());
    assert_eq!((got.offset, got.timestamp), (vec![0, 1, 2], vec![NOW, 10, -1]));
    assert_eq!((&got.value.data[..], got.value.valid), (&b"oldnew"[..], vec![1, 1, 1]));
    assert_eq!(got.key.valid, [0, 0, 0]);
}

#[test]
fn null_keys_and_values_stay_null_and_empty_ones_empty() {
    let mut set = Vec::new();
    for (key, value) in [(None, None), (Some(&b""[..]), None), (Some(b"k"), Some(&b""[..]))] {
        let message = Message {
            magic: 1,
            compression: Compression::None,
            log_append_time: false,
            timestamp: None,
            key,
            value,
        };
        write(&mut set, 0, &message).unwrap();
    }
    let got = up_converted(&set);
    assert_eq!((got.key.valid, got.value.valid), (vec![0, 1, 1], vec![0, 0, 1]));
    assert_eq!(got.timestamp, [-1, -1, -1]);
}

#[test]
fn wrappers_are_unwrapped_once() {
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4] {
        for magic in [0, 1] {
            let inner = [plain(magic, 10, b"a"), plain(magic, 20, b"b")].concat();
            let wrapper = wrapped(magic, compression, &inner);
            let got = up_converted(&[&plain(1, 7, b"z")[..], &wrapper, &wrapper].concat());
            let times = if magic == 0 { [NOW, NOW] } else { [10, 20] };
            assert_eq!(got.timestamp, [&[7][..], &times, &times].concat());
            assert_eq!((&got.value.data[..], got.offset), (&b"zabab"[..], vec![0, 1, 2, 3, 4]));
            assert_eq!(refusal(&wrapped(magic, compression, &wrapper)), Code::NestedCompression);
            assert_eq!(refusal(&wrapped(magic, compression, b"")), Code::BadCount);
            assert_eq!(refusal(&wrapped(magic, compression, &plain(1 - magic, 0, b""))), Code::BadMagic);
            assert_eq!(refusal(&wrapped(magic, compression, &inner[..30])), Code::Truncated);
            assert_eq!(
                up_convert(&wrapper, inner.len() - 1, NOW).unwrap_err().code,
                Code::DecompressionLimit
            );
            // The limit is for all wrappers together.
            let two = [&wrapper[..], &wrapper].concat();
            assert_eq!(
                up_convert(&two, 2 * inner.len() - 1, NOW).unwrap_err().code,
                Code::DecompressionLimit
            );
            assert!(up_convert(&two, 2 * inner.len(), NOW).is_ok());
        }
    }
}

#[test]
fn a_wrapper_stamped_on_append_gives_its_time() {
    let inner = [plain(1, 10, b"a"), plain(1, 20, b"b")].concat();
    let wrapper = with_attributes(wrapped(1, Compression::Gzip, &inner), 1 | 8);
    assert_eq!(up_converted(&wrapper).timestamp, [50, 50]);
}

#[test]
fn old_lz4_frames_are_taken() {
    let mut packed = Vec::new();
    compress(Compression::Lz4, &plain(0, 0, b"a"), &mut packed);
    packed[6] = (twox_hash::XxHash32::oneshot(0, &packed[..6]) >> 8) as u8;
    let wrapper = with_attributes(plain(0, 0, &packed), 3);
    assert_eq!(up_converted(&wrapper).value.data, b"a");
}

#[test]
fn every_rule_has_its_code() {
    let good = plain(1, 0, b"value");
    assert_eq!(refusal(b""), Code::BadCount);
    for end in 1..good.len() {
        assert_eq!(refusal(&good[..end]), Code::Truncated, "{end}");
    }
    for size in [i32::MIN, -1, 0, 13] {
        let mut bad = good.clone();
        bad[8..12].copy_from_slice(&size.to_be_bytes());
        assert_eq!(refusal(&bad), Code::BadLength);
    }
    let damage = |at: usize, byte: u8| {
        let mut bad = good.clone();
        bad[at] = byte;
        bad
    };
    assert_eq!(refusal(&damage(16, 2)), Code::BadMagic);
    assert_eq!(refusal(&damage(30, 9)), Code::BadCrc);
    assert_eq!(refusal(&sealed(damage(17, 4))), Code::UnknownCompression);
    assert_eq!(refusal(&sealed(damage(17, 7))), Code::UnknownCompression);
    assert_eq!(refusal(&sealed(damage(29, 0xfe))), Code::BadRecord); // key of -2 bytes
    assert_eq!(refusal(&sealed(damage(33, 6))), Code::BadRecord); // value past the end
    assert_eq!(refusal(&sealed(damage(33, 4))), Code::BadRecord); // a byte left over
    assert_eq!(refusal(&with_attributes(good.clone(), 1)), Code::CorruptCompression);
    // Magic 1 in the room of magic 0.
    let mut short = plain(0, 0, b"1234567");
    short[16] = 1;
    assert_eq!(refusal(&sealed(short)), Code::BadLength);
    let mut no_value = good[..good.len() - 5].to_vec();
    no_value[11] -= 5;
    no_value[30..34].copy_from_slice(&(-1_i32).to_be_bytes());
    assert_eq!(refusal(&with_attributes(no_value, 1)), Code::BadRecord);
    assert_eq!(refusal(&[plain(1, i64::MIN, b""), plain(1, 1, b"")].concat()), Code::OutOfRange);
}

#[test]
fn batches_are_lowered_with_their_offsets() {
    let mut batch = up_convert(&[plain(1, 10, b"a"), plain(1, 20, b"b")].concat(), LIMIT, NOW).unwrap();
    assign_offsets(&mut batch, 5, 0, None, None).unwrap();
    let set = down_convert(&batch, 1, LIMIT).unwrap();
    assert_eq!(set[..plain(1, 10, b"a").len()], plain(1, 10, b"a"));
    assert_eq!(set[35..43], 6_i64.to_be_bytes());
    assert_eq!(down_convert(&batch, 0, LIMIT).unwrap()[..27], plain(0, 10, b"a"));
    assert_eq!(down_convert(&batch, 2, LIMIT).unwrap_err().code, Code::BadValue);
    assert_eq!(down_convert(&batch[..70], 1, LIMIT).unwrap_err().code, Code::Truncated);

    assign_offsets(&mut batch, 5, 0, None, Some(99)).unwrap();
    let stamped = down_convert(&batch, 1, LIMIT).unwrap();
    assert_eq!((stamped[17], &stamped[18..26]), (8, &99_i64.to_be_bytes()[..]));
    assert_eq!(down_convert(&batch, 0, LIMIT).unwrap()[17], 0);

    let packed = crate::batch::recompress(&batch, Compression::Zstd, LIMIT).unwrap();
    assert_eq!(down_convert(&packed, 1, LIMIT), Ok(stamped));
    assert_eq!(down_convert(&packed, 1, 10).unwrap_err().code, Code::DecompressionLimit);
}

#[test]
fn control_batches_are_not_lowered() {
    let mut batch = up_convert(&plain(1, 10, b"a"), LIMIT, NOW).unwrap();
    batch[22] = 1 << 5;
    assert_eq!(down_convert(&batch, 1, LIMIT), Ok(vec![]));
}

proptest! {
    #[test]
    fn damaged_sets_are_a_value_or_an_error(
        which in 0..4_usize, at: prop::sample::Index, flip in 1..=u8::MAX, mend: bool,
    ) {
        let inner = [plain(1, 10, b"some text"), plain(1, 20, b"some other text")].concat();
        let mut set = if which == 0 { inner } else { wrapped(1, Compression::ALL[which], &inner) };
        let at = at.index(set.len());
        set[at] ^= flip;
        if mend {
            set = sealed(set);
        }
        let _ = up_convert(&set, LIMIT, NOW);
        let _ = down_convert(&set, 1, LIMIT);
    }

    #[test]
    fn random_bytes_are_a_value_or_an_error(bytes: Vec<u8>) {
        let _ = up_convert(&bytes, LIMIT, NOW);
        let _ = down_convert(&bytes, 0, LIMIT);
    }

    #[test]
    fn what_is_down_converted_is_up_converted_again(values: Vec<Option<Vec<u8>>>, first in 0..1_000_000_i64) {
        prop_assume!(!values.is_empty());
        let mut set = Vec::new();
        for (offset, value) in (0..).zip(&values) {
            let message = Message {
                magic: 1, compression: Compression::None, log_append_time: false,
                timestamp: Some(first + offset), key: value.as_deref(), value: value.as_deref(),
            };
            write(&mut set, offset, &message).unwrap();
        }
        let batch = up_convert(&set, LIMIT, NOW).unwrap();
        prop_assert_eq!(down_convert(&batch, 1, LIMIT), Ok(set));
    }
}
