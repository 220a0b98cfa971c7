//! Any bytes as a message set of Kafka 0.7: batches that serve what was sent and open, or an error. The checksum of the
//! first message is mended half of the time; and any bytes as batches of a log.
#![no_main]

use korvet_codec::columns::to_columns;
use korvet_codec::legacy::{down_convert, to_messages, to_values, up_convert};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&mend, bytes)) = data.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if mend & 1 == 1 && bytes.len() >= 10 && bytes[4] <= 1 {
        let start = 9 + usize::from(bytes[4]);
        let length = (bytes.len() - 4) as i32;
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        let crc = crc32fast::hash(&bytes[start..]);
        bytes[start - 4..start].copy_from_slice(&crc.to_be_bytes());
    }
    for batch in up_convert(&bytes, LIMIT, LIMIT, 1 << usize::from(mend >> 4)).unwrap_or_default() {
        let served =
            down_convert(&mut batch.bytes.clone(), 0, i64::MAX).expect("what is stored can be served");
        assert_eq!(served as i64, batch.span);
        let (values, next) =
            to_values(&batch.bytes, 0, LIMIT, LIMIT).expect("what was checked can be opened");
        assert!(next <= batch.span);
        to_columns(&values, LIMIT).expect("what is given to a client is good");
    }
    let _ = to_values(&bytes, 0, LIMIT, LIMIT);
    let _ = to_messages(&bytes, LIMIT);
    let _ = down_convert(&mut bytes, 0, i64::MAX);
});
