//! Any bytes to every decompression: never more than the limit, the same in pieces of any size, and what comes out can be
//! packed and unpacked again.
#![no_main]

use korvet_codec::compression::{Compression, Unpack, compress, decompress};
use korvet_codec::{Code, Result};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fn pieces(compression: Compression, data: &[u8], step: usize) -> Result<Vec<u8>> {
    let mut unpack = Unpack::new(compression, data, LIMIT, step)?;
    let mut out = Vec::new();
    while !unpack.advance()?.is_empty() {
        out.extend_from_slice(unpack.piece());
    }
    assert_eq!(unpack.left(), LIMIT - out.len());
    Ok(out)
}

fuzz_target!(|data: &[u8]| {
    let Some((&which, bytes)) = data.split_first() else { return };
    let compression = Compression::ALL[usize::from(which) % 5];
    let result = decompress(compression, bytes, LIMIT);
    let in_pieces = pieces(compression, bytes, 1 << (which / 16));
    if let Ok(plain) = &result {
        assert!(plain.len() <= LIMIT);
        assert_eq!(in_pieces.as_ref(), Ok(plain));
        let mut packed = Vec::new();
        compress(compression, plain, &mut packed);
        assert_eq!(decompress(compression, &packed, LIMIT).as_ref(), Ok(plain));
    } else {
        // Which of two faults is found first may differ.
        let codes = [Code::CorruptCompression, Code::DecompressionLimit];
        assert!(in_pieces.is_err_and(|error| codes.contains(&error.code)));
    }
});
