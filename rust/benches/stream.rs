//! Batches into Redis streams and back, 1 and 1,000 records of 100 and 1,000 bytes: `cargo bench -p korvet-benches --bin
//! stream`.
#![allow(missing_docs)] // criterion's macros write public functions

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use korvet_codec::batch::Origin;
use korvet_codec::columns::build_batch;
use korvet_codec::compression::Compression;
use korvet_codec::resp::{Groups, words};
use korvet_codec::stream::{Append, Head, decode_batches, decode_records};

const LIMIT: usize = 1 << 30;
const BASE: i64 = 1_700_000_000_000 << 10;

/// Records with a key and a value of `size` bytes.
fn batch(count: usize, size: usize) -> Vec<u8> {
    let offsets =
        |width: usize| (0..=count).flat_map(|i| ((i * width) as i32).to_ne_bytes()).collect::<Vec<_>>();
    let times: Vec<u8> = (0..count as i64).flat_map(|i| (1_700_000_000_000 + i / 10).to_ne_bytes()).collect();
    let keys: Vec<u8> = (0..count).flat_map(|i| format!("order-{i:07}").into_bytes()).collect();
    let columns: [(&str, &[u8]); 7] = [
        ("timestamp", &times),
        ("key_offsets", &offsets(13)),
        ("key", &keys),
        ("key_valid", &vec![1; count]),
        ("value_offsets", &offsets(size)),
        ("value", &vec![b'x'; count * size]),
        ("value_valid", &vec![1; count]),
    ];
    build_batch(&columns, Compression::None, 0, Origin::NONE).expect("the columns agree")
}

/// XRANGE's answer where this batch was appended.
fn reply(packed: &[u8], count: usize) -> Vec<u8> {
    let text = String::from_utf8_lossy(packed);
    let command = "*9\r\n$4\r\nXADD\r\n$15\r\nkorvet:orders:0\r\n";
    let entries = text.split(command).skip(1).map(|entry| {
        let id = entry.match_indices("\r\n").nth(1).expect("an id").0 + 2;
        ["*2\r\n", &entry[..id], "*6\r\n", &entry[id..]].concat()
    });
    [format!("*{count}\r\n"), entries.collect()].concat().into_bytes()
}

fn append(batch: &[u8], head: &[u8]) -> Vec<u8> {
    let head = Head { words: 2, packed: head };
    let append = Append::new(batch, BASE, 10, LIMIT, head, head).expect("a good batch");
    let mut out = vec![0; append.size()];
    append.write(&mut out);
    out
}

fn stream(c: &mut Criterion) {
    let head = words(&["XADD", "korvet:orders:0"]);
    for size in [100, 1000] {
        for count in [1, 1000] {
            let batch = batch(count, size);
            let reply = reply(&append(&batch, &head), count);
            let mut group = c.benchmark_group("stream");
            group.throughput(Throughput::Elements(count as u64));
            let mut run = |name: &str, work: &mut dyn FnMut()| {
                group.bench_function(BenchmarkId::new(name, format!("{count} x {size}")), |b| {
                    b.iter(&mut *work);
                });
            };
            run("append", &mut || drop(black_box(append(black_box(&batch), &head))));
            run("groups", &mut || drop(black_box(Groups::new(LIMIT).end(black_box(&reply)))));
            run("decode_records", &mut || {
                drop(black_box(decode_records(black_box(&reply), 10, 0, LIMIT, Compression::None, 0)));
            });
            group.finish();
        }
    }
    let blob = batch(60, 1000);
    let mut range = format!("*1\r\n*2\r\n$3\r\n0-0\r\n*2\r\n$5\r\nbatch\r\n${}\r\n", blob.len()).into_bytes();
    range.extend([&blob[..], b"\r\n"].concat());
    c.bench_function("stream/decode_batches 60 x 1000", |b| {
        b.iter(|| decode_batches(black_box(&range), 10, 0, LIMIT));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(1))
        .warm_up_time(std::time::Duration::from_millis(300));
    targets = stream
}
criterion_main!(benches);
