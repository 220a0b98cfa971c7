use super::{batch, reply};
use crate::Code;
use crate::batch::assign_offsets;
use crate::compression::Compression;
use crate::stream::{DecodedBatches, decode_batches};

/// A batch of `count` records at this offset.
fn at(base: i64, count: usize) -> Vec<u8> {
    let mut bytes = batch(5, &vec![(None, Some(&b"value"[..]), &[][..]); count], Compression::Lz4);
    assign_offsets(&mut bytes, base, 1, None, None).unwrap();
    bytes
}

fn stored() -> [Vec<Vec<u8>>; 3] {
    [(1, 3), (4, 1), (1500, 2)].map(|(base, count)| {
        let id = format!("{}-{}", base >> 10, base & 1023);
        vec![id.into_bytes(), b"batch".to_vec(), at(base, count)]
    })
}

fn bases(reply: &[u8], found: &DecodedBatches) -> Vec<i64> {
    let base = |bytes: &[u8]| i64::from_be_bytes(bytes[..8].try_into().expect("8 bytes"));
    found.places.iter().map(|place| base(&reply[place.clone()])).collect()
}

#[test]
fn batches_are_found_where_they_lie() {
    let reply = reply(&stored());
    let found = decode_batches(&reply, 10, 0, 1 << 20).unwrap();
    assert_eq!(
        (bases(&reply, &found), found.next, found.seen, found.skipped),
        (vec![1, 4, 1500], 1502, 3, 0)
    );
    assert_eq!(reply[found.places[0].clone()], at(1, 3));
    for (start, expected) in [(3, vec![1, 4, 1500]), (4, vec![4, 1500]), (5, vec![1500]), (1502, vec![])] {
        let found = decode_batches(&reply, 10, start, 1 << 20).unwrap();
        assert_eq!((bases(&reply, &found), found.next), (expected, 1502), "{start}");
    }
    let one = decode_batches(&reply, 10, 0, 0).unwrap();
    assert_eq!((bases(&reply, &one), one.next, one.seen), (vec![1], 4, 1));
    let two = decode_batches(&reply, 10, 0, at(1, 3).len() + at(4, 1).len()).unwrap();
    assert_eq!((bases(&reply, &two), two.next, two.seen), (vec![1, 4], 5, 2));
}

#[test]
fn offsets_from_0_on_have_ids_of_their_own() {
    let entry = |id: &str, base, count| vec![id.as_bytes().to_vec(), b"batch".to_vec(), at(base, count)];
    let reply = reply(&[
        entry("0-1", 0, 3),
        entry("3-0", 3, 1),
        entry("3-1", 3, 1),
        entry("3-2", 3, 1),
        entry("4-1", 4, 1),
    ]);
    let found = decode_batches(&reply, 0, 0, 1 << 20).unwrap();
    assert_eq!((bases(&reply, &found), found.next, found.seen, found.skipped), (vec![0, 3, 4], 5, 5, 2));
    for (id, after) in
        [("7-0", 7), ("7-2", 8), ("9223372036854775807-2", i64::MAX), ("18446744073709551615-1", i64::MAX)]
    {
        let reply = super::reply(&[entry(id, 1, 1)]);
        let found = decode_batches(&reply, 0, 0, 1 << 20).unwrap();
        assert_eq!((found.next, found.skipped), (after, 1), "{id}");
    }
}

#[test]
fn what_is_no_batch_is_skipped() {
    let good = &stored()[1];
    let mut all = vec![vec![b"0-1".to_vec(), b"value".to_vec(), b"v".to_vec()]];
    all.push([&[b"0-2".to_vec()], &good[1..]].concat());
    all.push([&[b"0-3".to_vec()], &good[1..], &good[1..]].concat());
    all.push(good.clone());
    all.push(vec![b"0-6".to_vec(), b"batch".to_vec(), [&good[2][..], b"x"].concat()]);
    all.push(vec![b"1-1024".to_vec(), b"batch".to_vec(), good[2].clone()]);
    let reply = reply(&all);
    let found = decode_batches(&reply, 10, 0, 1 << 20).unwrap();
    assert_eq!((bases(&reply, &found), found.next, found.seen, found.skipped), (vec![4], 2048, 6, 5));
}

#[test]
fn what_is_no_reply_to_xrange_is_refused() {
    for text in ["", "-ERR\r\n", "*1\r\n", "*0\r\nx"] {
        assert_eq!(decode_batches(text.as_bytes(), 10, 0, 0).unwrap_err().code, Code::BadResp, "{text:?}");
    }
    assert_eq!(decode_batches(b"*0\r\n", 63, 0, 0).unwrap_err().code, Code::OutOfRange);
}
