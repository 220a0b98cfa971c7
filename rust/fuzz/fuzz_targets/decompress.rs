//! Any bytes to every decompression: never more than the bound, and what comes out can be packed and unpacked again.
#![no_main]

use korvet_codec::compression::{Compression, bound, compress, decompress, decompress_old};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&which, bytes)) = data.split_first() else { return };
    let compression = Compression::ALL[usize::from(which) % 5];
    let result = decompress(compression, bytes, LIMIT);
    if let Ok(plain) = &result {
        assert!(plain.len() <= bound(bytes.len(), LIMIT));
        assert_eq!(decompress_old(compression, bytes, LIMIT).as_ref(), Ok(plain));
        let mut packed = Vec::new();
        compress(compression, plain, &mut packed);
        // The bound is for what others pack: a long run of zeros may be beyond it.
        if plain.len() <= bound(packed.len(), LIMIT) {
            assert_eq!(decompress(compression, &packed, LIMIT).as_ref(), Ok(plain));
        }
    } else {
        let _ = decompress_old(compression, bytes, LIMIT);
    }
});
