//! Any stream, cut anywhere: the same lines, bounded, and a run has nothing but PRODUCE lines.
#![no_main]

use korvet_codec::text::{Lines, OVER, ProduceRun};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 100;

/// All lines, runs taken apart; whether one was too long.
fn cut(data: &[u8], step: usize, most: usize) -> (Vec<Vec<u8>>, bool) {
    let (mut lines, mut all, mut over) = (Lines::new(LIMIT), Vec::new(), false);
    for chunk in data.chunks(step) {
        let mut data = chunk;
        loop {
            let mut given = 0;
            lines.feed(data, most, |one| {
                assert!(!over, "nothing comes behind a line that is too long");
                given += 1;
                if one == OVER {
                    over = true;
                } else if let Some(run) = one.strip_suffix(b"\n") {
                    for line in run.split(|byte| *byte == b'\n') {
                        assert!(line.starts_with(b"V1|"));
                        all.push(line.strip_suffix(b"\r").unwrap_or(line).to_vec());
                    }
                } else {
                    all.push(one.to_vec());
                }
            });
            data = &[];
            if given < most {
                break;
            }
        }
        assert!(lines.pending() <= LIMIT + 1);
    }
    (all, over)
}

fuzz_target!(|data: &[u8]| {
    let Some((&step, stream)) = data.split_first() else { return };
    let (all, over) = cut(stream, stream.len().max(1), usize::MAX);
    let (again, again_over) = cut(stream, usize::from(step).max(1), 1 + usize::from(step) % 5);
    assert_eq!((&all, over), (&again, again_over));
    assert!(all.iter().all(|line| line.len() <= LIMIT && !line.contains(&b'\n')));
    // A run is answered line by line, whatever is in it.
    let run = ProduceRun::new(stream.to_vec());
    let count = |text: &[u8]| text.split(|byte| *byte == b'\n').count();
    assert_eq!(count(&run.answer(&[], &[])), count(stream));
});
