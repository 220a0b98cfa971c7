//! Any bytes through every entrance for version 2 batches: a value or an error. With the checksum mended half of the
//! time, so that what lies behind it is reached.
#![no_main]

use korvet_codec::arrow::{Name, Wanted};
use korvet_codec::batch::{
    assign_offsets, batch_headers, find_time, recompress, slice_batches, validate_batches,
};
use korvet_codec::columns::to_columns;
use korvet_codec::compression::Compression;
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&mend, bytes)) = data.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if mend & 1 == 1 && bytes.len() >= 61 {
        let length = (bytes.len() - 12) as i32;
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[16] = 2;
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    }
    for batch in batch_headers(&bytes, mend & 2 == 2) {
        assert!(batch.start + batch.header.size <= bytes.len());
    }
    let (from, to, _) = slice_batches(&bytes, 0, i64::MAX, 1000);
    assert!(from <= to && to <= bytes.len());
    let _ = find_time(&bytes, 0, LIMIT, 1);
    let columns_of_all =
        Name::parse(&["key", "value", "topic", "timestamp", "timestampType", "headers"]).expect("known");
    let wanted = Wanted {
        topic: "t",
        partition: 0,
        columns: &columns_of_all,
        start: i64::MIN,
        end: i64::MAX,
        max_rows: 1000,
        max_bytes: LIMIT,
        limit: LIMIT,
        aborted: &[(1, 0)],
    };
    let records = wanted.read(&bytes);

    let Ok(found) = validate_batches(&bytes, LIMIT) else {
        let _ = to_columns(&bytes, LIMIT);
        return;
    };
    // Data that passes can be read, one row a record, and rewritten into data that passes again.
    let count = found.iter().map(|batch| batch.header.count as usize).sum::<usize>();
    if let Ok(columns) = to_columns(&bytes, LIMIT) {
        assert_eq!(columns.offset.len(), count);
    }
    if let [only] = found[..] {
        if let Ok(records) = records {
            let all = only.header.last_offset() < i64::MAX && !only.header.transactional();
            assert!(!all || records.rows == count);
        }
        let plain = recompress(&bytes, Compression::None, LIMIT).expect("it was just decompressed");
        assert_eq!(
            validate_batches(&plain, LIMIT).expect("nothing else changed")[0].header.count,
            only.header.count
        );
        assign_offsets(&mut bytes, 7, 1, Some(3), None).expect("one good batch");
        assert_eq!(validate_batches(&bytes, LIMIT).expect("still good")[0].header.base_offset, 7);
    }
});
