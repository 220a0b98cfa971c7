//! gzip, several members one after another included.

use std::io::{Read, Write};

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::bounds::{corrupt, over};
use crate::Result;

/// Members of which some bytes have come out.
pub(super) struct Members<'d> {
    decoder: MultiGzDecoder<&'d [u8]>,
    done: bool,
}

impl<'d> Members<'d> {
    pub(super) fn new(data: &'d [u8]) -> Self {
        Self { decoder: MultiGzDecoder::new(data), done: false }
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Append to `out` until it has `until` bytes, never more than `most`.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, until: usize, most: usize) -> Result<()> {
        // One byte more than allowed tells a full output from one that is cut.
        let end = until.min(most.saturating_add(1));
        let wanted = end - out.len();
        if self.decoder.by_ref().take(wanted as u64).read_to_end(out).is_err() {
            return corrupt("broken gzip");
        }
        self.done = out.len() < end;
        if out.len() > most { over() } else { Ok(()) }
    }
}

pub(super) fn compress(data: &[u8], out: &mut Vec<u8>) {
    let mut encoder = GzEncoder::new(out, flate2::Compression::default());
    let written = encoder.write_all(data).and_then(|()| encoder.finish().map(drop));
    written.expect("writing to memory does not fail");
}
