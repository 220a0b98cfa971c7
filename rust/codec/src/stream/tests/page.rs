use proptest::prelude::*;

use super::{LIMIT, Row, batch, commands, reply, written};
use crate::batch::batch_headers;
use crate::columns::{Cells, Columns, to_columns};
use crate::compression::Compression;
use crate::resp::words;
use crate::stream::{Append, DecodedRecords, Head, decode_records};
use crate::{Code, Result};

fn read(reply: &[u8], start: i64, max_bytes: usize) -> Result<DecodedRecords> {
    decode_records(reply, 10, start, max_bytes, Compression::None, 3)
}

fn cells(cells: &Cells) -> Vec<Option<&[u8]>> {
    (0..cells.valid.len())
        .map(|at| {
            let range = cells.offsets[at] as usize..cells.offsets[at + 1] as usize;
            (cells.valid[at] == 1).then_some(&cells.data[range])
        })
        .collect()
}

/// Offset and time of each record of a page; all of it is sound.
fn places(page: &DecodedRecords) -> Vec<(i64, i64)> {
    let sound: usize = batch_headers(&page.batches, true).iter().map(|batch| batch.header.size).sum();
    assert_eq!(sound, page.batches.len());
    let Columns { offset, timestamp, .. } = to_columns(&page.batches, LIMIT).unwrap();
    offset.into_iter().zip(timestamp).collect()
}

type Made = (Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>);

fn made() -> impl Strategy<Value = Vec<Made>> {
    let cell = || prop::option::of(prop::collection::vec(any::<u8>(), 0..20));
    let name = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        prop::sample::select(vec!["key", "headers", "null.header.x", "header.y", "timestamp"])
            .prop_map(|name: &str| name.as_bytes().to_vec()),
    ];
    let header = (name, cell());
    prop::collection::vec((cell(), cell(), prop::collection::vec(header, 0..4)), 1..8)
}

proptest! {
    #[test]
    fn records_come_back_as_they_were(
        rows in made(), base in 1..i64::MAX - 10, time: i64, bits in 0_u32..63, to in 0_usize..5, from in 0_usize..5
    ) {
        let lent: Vec<Vec<_>> = rows
            .iter()
            .map(|(_, _, headers)| headers.iter().map(|(name, value)| (&name[..], value.as_deref())).collect())
            .collect();
        let rows: Vec<Row> = rows
            .iter()
            .zip(&lent)
            .map(|((key, value, _), headers)| (key.as_deref(), value.as_deref(), &headers[..]))
            .collect();
        let original = batch(time, &rows, Compression::ALL[from]);
        let head = words(&["XADD", "log"]);
        let head = Head { words: 2, packed: &head };
        let append = Append::new(&original, base, bits, LIMIT, head, head).unwrap();
        let mut packed = vec![0; append.size()];
        append.write(&mut packed);
        let stored: Vec<_> = commands(&packed).into_iter().map(|mut words| words.split_off(2)).collect();

        let page = decode_records(&reply(&stored), bits, base, LIMIT, Compression::ALL[to], 7).unwrap();
        prop_assert_eq!((page.next, page.seen, page.skipped), (base + rows.len() as i64, rows.len(), 0));
        let mut expected = to_columns(&original, LIMIT).unwrap();
        expected.offset.iter_mut().for_each(|offset| *offset += base);
        prop_assert_eq!(to_columns(&page.batches, LIMIT).unwrap(), expected);
        let found = batch_headers(&page.batches, true);
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!(found[0].header.compression(), to as u8);
        prop_assert_eq!((found[0].header.leader_epoch, found[0].header.producer_id), (7, -1));
    }

    #[test]
    fn any_cut_of_a_reply_is_refused(size in 0_usize..60) {
        let whole = written(&["1-1 key k value v", "1-2 a b"]);
        prop_assert_eq!(read(&whole[..whole.len() - 1 - size % whole.len()], 0, LIMIT).unwrap_err().code, Code::BadResp);
    }
}

#[test]
fn entries_of_other_programs_are_read() {
    let json = r#"{"source":"web","n":1,"none":null}"#;
    let long = vec!["7-9", "headers", json, "value", "v", "value", "w", "timestamp", "soon", "headers", "{"];
    let mut all = vec![long];
    all.push(vec![
        "8-0",
        "timestamp",
        "-5",
        "timestamp",
        "6",
        "null.header.x",
        "y",
        "null.header.x",
        "",
        "key",
        "",
    ]);
    all.push(vec!["9-0"]);
    let page = read(&reply(&all), 0, LIMIT).unwrap();
    assert_eq!(places(&page), [(7 << 10 | 9, 7), (8 << 10, -5), (9 << 10, 9)]);
    let found = to_columns(&page.batches, LIMIT).unwrap();
    assert_eq!(cells(&found.key), [None, Some(&b""[..]), None]);
    assert_eq!(cells(&found.value), [Some(&b"v"[..]), None, None]);
    assert_eq!(found.header_offsets, [0, 6, 9, 9]);
    let names = ["source", "n", "none", "value", "timestamp", "headers", "timestamp", "null.header.x", "x"];
    assert_eq!(cells(&found.header_key), names.map(|name| Some(name.as_bytes())));
    let values =
        [Some("web"), Some("1"), None, Some("w"), Some("soon"), Some("{"), Some("6"), Some("y"), None];
    assert_eq!(cells(&found.header_value), values.map(|value| value.map(str::as_bytes)));
}

#[test]
fn ids_that_are_no_offsets_are_skipped() {
    let all = written(&["1-1023 a 1", "1-1024 a 2", "1-18446744073709551615 a 3", "2-0 a 4"]);
    let page = read(&all, 0, LIMIT).unwrap();
    assert_eq!(places(&page), [(2047, 1), (2048, 2)]);
    assert_eq!((page.next, page.seen, page.skipped), (2049, 4, 2));
    let page = read(&written(&["1-1024 a 2"]), 1025, LIMIT).unwrap();
    assert_eq!((page.batches.len(), page.next, page.seen, page.skipped), (0, 2048, 1, 1));
    let page = read(&written(&["1-1024 a 2"]), 5000, LIMIT).unwrap();
    assert_eq!((page.next, page.skipped), (5000, 1));
    let far = ["9007199254740991-1023 a 1", "9007199254740991-1024 a 2", "9007199254740992-0 a 3"];
    let page = read(&written(&far), 0, LIMIT).unwrap();
    assert_eq!(places(&page), [(i64::MAX, (1 << 53) - 1)]);
    assert_eq!((page.next, page.seen, page.skipped), (i64::MAX, 3, 2));
}

#[test]
fn a_page_has_a_size_but_never_nothing() {
    let all = written(&["0-1 value 0123456789", "0-2 value 0123456789", "0-3 value 0123456789"]);
    let one = read(&all, 0, 0).unwrap();
    assert_eq!((places(&one).len(), one.next, one.seen), (1, 2, 1));
    let two = read(&all, 0, read(&all, 2, LIMIT).unwrap().batches.len()).unwrap();
    assert_eq!((places(&two).len(), two.next, two.seen), (2, 3, 2));
    let rest = read(&all, two.next, 0).unwrap();
    assert_eq!((places(&rest), rest.next, rest.seen), (vec![(3, 0)], 4, 3));
    let none = read(&all, 4, LIMIT).unwrap();
    assert_eq!((none.batches.len(), none.next, none.seen), (0, 4, 3));
    assert_eq!(read(b"*0\r\n", -5, 0), Ok(DecodedRecords { batches: vec![], next: -5, seen: 0, skipped: 0 }));
}

#[test]
fn what_does_not_fit_begins_another_batch() {
    let far = 1_i64 << 21;
    let ids = [
        "1-0 a b".to_owned(),
        format!("{far}-1023 a b"),
        format!("{}-0 a b", far + 1),
        format!("{}-0 a b", 3 * far),
    ];
    let page = read(&written(&ids.each_ref().map(|id| &id[..])), 0, LIMIT).unwrap();
    let found: Vec<_> = batch_headers(&page.batches, true)
        .iter()
        .map(|batch| (batch.header.base_offset, batch.header.count))
        .collect();
    assert_eq!(found, [(1024, 2), ((far + 1) << 10, 1), ((3 * far) << 10, 1)]);
    assert_eq!(places(&page).len(), 4);

    let times =
        ["1-0 timestamp -9223372036854775808", "1-1 timestamp 0", "1-2 timestamp 9223372036854775807"];
    let page = read(&written(&times), 0, LIMIT).unwrap();
    assert_eq!(places(&page), [(1024, i64::MIN), (1025, 0), (1026, i64::MAX)]);
    assert_eq!(batch_headers(&page.batches, true).len(), 2);
}

#[test]
fn what_is_no_reply_to_xrange_is_refused() {
    for text in [
        "",
        "*",
        "*1\r\n",
        "-ERR no\r\n",
        ":1\r\n",
        "*-1\r\n",
        "$1\r\n1\r\n",
        "*0\r\n*0\r\n",
        "*1\r\n$3\r\n1-1\r\n",
        "*1\r\n*2\r\n$3\r\n1-1\r\n*-1\r\n",
        "*1\r\n*2\r\n$3\r\n1-1\r\n*1\r\n$1\r\na\r\n",
        "*1\r\n*3\r\n$3\r\n1-1\r\n*0\r\n*0\r\n",
        "*1\r\n*2\r\n:1\r\n*0\r\n",
        "*1000000000\r\n",
        "*01x\r\n",
        "*1\r\n*2\r\n$3\r\n1-1xx*0\r\n",
        "*1\r\n*2\r\n$999999999\r\n",
    ] {
        assert_eq!(read(text.as_bytes(), 0, LIMIT).unwrap_err().code, Code::BadResp, "{text:?}");
    }
    for id in ["", "1", "-", "1-", "-1", "1-1-1", "a-1", "1-+1", "18446744073709551616-0", "1_0-0"] {
        assert_eq!(read(&reply(&[vec![id]]), 0, LIMIT).unwrap_err().code, Code::BadResp, "{id:?}");
    }
    assert_eq!(read(&written(&["2-0", "1-9"]), 0, LIMIT).unwrap_err().code, Code::BadResp);
    assert_eq!(read(&written(&["2-0", "2-0"]), 0, LIMIT).unwrap_err().code, Code::BadResp);
    assert_eq!(decode_records(b"*0\r\n", 63, 0, 0, Compression::None, 0).unwrap_err().code, Code::OutOfRange);
}
