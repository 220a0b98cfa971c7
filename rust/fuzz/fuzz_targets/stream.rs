//! Any bytes as a reply to XRANGE, and as a batch to append to a stream: a value or an error, and sound batches.
#![no_main]

use korvet_codec::batch::batch_headers;
use korvet_codec::columns::to_columns;
use korvet_codec::compression::Compression;
use korvet_codec::resp::words;
use korvet_codec::stream::{Append, Head, decode_batches, decode_records};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

/// Offsets of the records in batches that must be sound to the last byte.
fn offsets(batches: &[u8]) -> Vec<i64> {
    let sound: usize = batch_headers(batches, true).iter().map(|batch| batch.header.size).sum();
    assert_eq!(sound, batches.len());
    to_columns(batches, 1 << 30).expect("batches of our own").offset
}

fn read(reply: &[u8], bits: u32, choice: u8) {
    let compression = Compression::ALL[usize::from(choice) % 5];
    let Ok(whole) = decode_records(reply, bits, i64::MIN, LIMIT, compression, 0) else {
        assert!(decode_batches(reply, bits, i64::MIN, LIMIT).is_err());
        return;
    };
    let all = offsets(&whole.batches);
    assert_eq!(all.len() + whole.skipped, whole.seen);
    // From page to page the same records come by, one or more at a time.
    let (mut start, mut found) = (0, Vec::new());
    loop {
        let page = decode_records(reply, bits, start, usize::from(choice), Compression::None, 0)
            .expect("it was read");
        let mut more = offsets(&page.batches);
        // There is no offset behind the very last one, which is read again and again.
        more.retain(|offset| found.last().is_none_or(|last| last < offset));
        if more.is_empty() {
            break;
        }
        found.extend(more);
        assert!(page.next >= start && page.next >= *found.last().expect("a record"));
        start = page.next;
    }
    assert_eq!(found, all);

    let found = decode_batches(reply, bits, 0, LIMIT).expect("the same entries");
    for place in found.places {
        assert!(batch_headers(&reply[place], false).len() == 1);
    }
}

fn append(batch: &[u8], bits: u32) {
    let mut batch = batch.to_vec();
    if batch.len() >= 61 {
        let length = (batch.len() - 12) as i32;
        batch[8..12].copy_from_slice(&length.to_be_bytes());
        batch[16] = 2;
    }
    let head = words(&["XADD", "log"]);
    let head = Head { words: 2, packed: &head };
    if let Ok(append) = Append::new(&batch, 1000, bits, LIMIT, head, head) {
        let mut out = vec![0; append.size()];
        append.write(&mut out);
    }
}

fuzz_target!(|data: &[u8]| {
    let [choice, bits, bytes @ ..] = data else { return };
    read(bytes, u32::from(*bits), *choice);
    append(bytes, u32::from(*bits));
});
