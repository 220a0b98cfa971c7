//! Any stream, cut anywhere: the same frames, and never more room than what has arrived deserves.
#![no_main]

use korvet_codec::frames::{EAGER, Frames};
use korvet_codec::{Code, Result};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fn cut(data: &[u8], step: usize, direct: bool) -> Result<(Vec<Vec<u8>>, usize)> {
    let (mut frames, mut open, mut whole) = (Frames::new(LIMIT), Vec::new(), Vec::new());
    for chunk in data.chunks(step) {
        let mut rest = chunk;
        if let Some(place) = if direct { frames.rest() } else { None } {
            let now = rest.split_off(..place.len().min(rest.len())).unwrap_or_default();
            open.resize(place.end, 0);
            open[place.start..place.start + now.len()].copy_from_slice(now);
            if frames.advance(now.len())? {
                whole.push(std::mem::take(&mut open));
            }
        }
        while let Some(part) = frames.next(&mut rest)? {
            assert!(part.room <= EAGER.max(2 * (part.at + part.bytes.len())));
            open.resize(part.room, 0);
            open[part.at..part.at + part.bytes.len()].copy_from_slice(part.bytes);
            if part.last {
                whole.push(std::mem::take(&mut open));
            }
        }
    }
    Ok((whole, frames.pending()))
}

fuzz_target!(|data: &[u8]| {
    let Some((&step, stream)) = data.split_first() else { return };
    let whole = cut(stream, stream.len().max(1), false);
    assert_eq!(whole, cut(stream, usize::from(step).max(1), false));
    assert_eq!(whole, cut(stream, usize::from(step).max(1) << 12, true));
    match whole {
        Ok((frames, pending)) => {
            let size: usize = frames.iter().map(|frame| frame.len() + 4).sum();
            assert_eq!(size + pending, stream.len());
        }
        Err(error) => assert!(matches!(error.code, Code::NegativeLength | Code::Oversize)),
    }
});
