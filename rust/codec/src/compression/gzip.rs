//! gzip, several members one after another included.

use std::io::{Read, Write};

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::{corrupt, over};
use crate::Result;

pub(super) fn decompress(data: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    // One byte more than allowed tells a full output from one that is cut.
    let mut bounded = MultiGzDecoder::new(data).take(most as u64 + 1);
    if bounded.read_to_end(&mut out).is_err() {
        return corrupt("broken gzip");
    }
    if out.len() > most { over() } else { Ok(out) }
}

pub(super) fn compress(data: &[u8], out: &mut Vec<u8>) {
    let mut encoder = GzEncoder::new(out, flate2::Compression::default());
    let written = encoder.write_all(data).and_then(|()| encoder.finish().map(drop));
    written.expect("writing to memory does not fail");
}
