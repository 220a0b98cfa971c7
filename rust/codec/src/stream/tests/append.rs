use super::{LIMIT, batch};
use crate::compression::Compression;
use crate::resp::{encode_commands, encoded_size, words};
use crate::stream::{Append, Head, MOST_HEADERS};
use crate::{Code, Error};

fn append(bytes: &[u8], base: i64, bits: u32) -> Result<Vec<u8>, Code> {
    let (each, first) = (words(&["XADD", "log"]), words(&["EVAL", "script", "1", "log"]));
    let (each, first) = (Head { words: 2, packed: &each }, Head { words: 4, packed: &first });
    let append = Append::new(bytes, base, bits, LIMIT, each, first).map_err(|error: Error| error.code)?;
    let mut out = vec![0; append.size()];
    append.write(&mut out);
    Ok(out)
}

pub(super) fn packed(commands: &[&[&str]]) -> Vec<u8> {
    let commands: Vec<Vec<&str>> = commands.iter().map(|words| words.to_vec()).collect();
    let mut out = vec![0; encoded_size(&commands)];
    encode_commands(&commands, &mut out);
    out
}

#[test]
fn records_become_entries() {
    let rows = [
        (
            Some(&b"k"[..]),
            Some(&b"one"[..]),
            &[(&b"a"[..], Some(&b"1"[..])), (b"a", None), (b"", Some(b""))][..],
        ),
        (None, Some(b"two"), &[]),
        (Some(b""), None, &[]),
    ];
    for compression in Compression::ALL {
        let bytes = batch(-17, &rows, compression);
        assert_eq!(
            append(&bytes, 1023, 10).unwrap(),
            packed(&[
                &[
                    "EVAL",
                    "script",
                    "1",
                    "log",
                    "0-1023",
                    "key",
                    "k",
                    "value",
                    "one",
                    "timestamp",
                    "-17",
                    "header.a",
                    "1",
                    "null.header.a",
                    "",
                    "header.",
                    "",
                ],
                &["XADD", "log", "1-0", "value", "two", "timestamp", "-17"],
                &["XADD", "log", "1-1", "key", "", "timestamp", "-17"],
            ]),
        );
    }
}

#[test]
fn ids_are_those_of_the_offsets() {
    let row = (None, None, &[][..]);
    let bytes = batch(1_234_567_890_123, &[row; 2], Compression::None);
    let expected = |ids: [&str; 2]| {
        packed(&[
            &["EVAL", "script", "1", "log", ids[0], "timestamp", "1234567890123"],
            &["XADD", "log", ids[1], "timestamp", "1234567890123"],
        ])
    };
    for (base, bits, ids) in [
        (1_264_197_519_485_952, 10, ["1234567890123-0", "1234567890123-1"]),
        (1_264_197_519_485_956, 10, ["1234567890123-4", "1234567890123-5"]),
        (1_264_197_519_462_400, 10, ["1234567890100-0", "1234567890100-1"]),
        (5, 10, ["0-5", "0-6"]),
        (5, 0, ["5-0", "6-0"]),
        (1, 1, ["0-1", "1-0"]),
        (i64::MAX - 1, 62, ["1-4611686018427387902", "1-4611686018427387903"]),
        (i64::MAX - 1, 0, ["9223372036854775806-0", "9223372036854775807-0"]),
    ] {
        assert_eq!(append(&bytes, base, bits).unwrap(), expected(ids), "{base} {bits}");
    }
    for (base, bits) in [(0, 10), (-1, 10), (i64::MIN, 10), (i64::MAX, 10), (1, 63), (1, u32::MAX)] {
        assert_eq!(append(&bytes, base, bits), Err(Code::OutOfRange), "{base} {bits}");
    }
}

#[test]
fn what_is_no_batch_to_append_is_refused() {
    let row = (None, Some(&b"v"[..]), &[][..]);
    let good = batch(0, &[row; 3], Compression::None);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        append(&bytes, 1, 10)
    };
    assert_eq!(append(&good[..60], 1, 10), Err(Code::Truncated));
    assert_eq!(append(&[&good[..], b"x"].concat(), 1, 10), Err(Code::TrailingBytes));
    assert_eq!(with(22, 0x20), Err(Code::BadAttributes));
    assert_eq!(with(22, 0x07), Err(Code::UnknownCompression));
    assert_eq!(with(22, 0x01), Err(Code::CorruptCompression));
    assert_eq!(with(60, 0), Err(Code::BadCount));
    assert_eq!(with(57, 0xff), Err(Code::BadCount));
    assert_eq!(with(60, 4), Err(Code::BadRecord));
    assert_eq!(with(60, 2), Err(Code::BadRecord));
    assert_eq!(with(64, 2), Err(Code::BadOffset));
    let header = [(&b"h"[..], None)];
    let most = header.repeat(MOST_HEADERS as usize);
    let more = header.repeat(MOST_HEADERS as usize + 1);
    assert!(append(&batch(0, &[(None, None, &most)], Compression::None), 1, 10).is_ok());
    assert_eq!(
        append(&batch(0, &[(None, None, &more)], Compression::None), 1, 10),
        Err(Code::TooManyElements)
    );
}
