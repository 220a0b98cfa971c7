//! Frames out of one socket read: many small ones, and a large one.
#![allow(missing_docs)] // criterion's macros write public functions

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use korvet_codec::frames::Frames;

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("frames");
    for (count, size) in [(1, 200), (100, 200), (1, 65_536)] {
        let frame = [&(size as u32).to_be_bytes()[..], &vec![7; size]].concat();
        let data = frame.repeat(count);
        let mut frames = Frames::new(1 << 20);
        group.throughput(Throughput::Bytes(data.len() as u64));
        group.bench_function(format!("{count} of {size}"), |b| {
            b.iter(|| {
                let mut rest = black_box(&data[..]);
                while let Ok(Some(part)) = frames.next(&mut rest) {
                    black_box(part);
                }
            });
        });
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
