//! Any bytes as a message set of magic 0 and 1: a good version 2 batch or an error, and back. With the first message's
//! size and checksum mended half of the time.
#![no_main]

use korvet_codec::batch::validate_batches;
use korvet_codec::legacy::{down_convert, up_convert};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&mend, bytes)) = data.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if mend & 1 == 1 && bytes.len() >= 26 {
        let size = (bytes.len() - 12) as i32;
        bytes[8..12].copy_from_slice(&size.to_be_bytes());
        let crc = crc32fast::hash(&bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_be_bytes());
    }
    if let Ok(batch) = up_convert(&bytes, LIMIT, 0) {
        let found = validate_batches(&batch, LIMIT).expect("what is up-converted is good");
        assert_eq!(found.len(), 1);
        let set = down_convert(&batch, 1, LIMIT).expect("what is up-converted can be down-converted");
        assert_eq!(up_convert(&set, LIMIT, 0).expect("and lifted again"), batch);
    }
    let _ = down_convert(&bytes, mend >> 7, LIMIT);
});
