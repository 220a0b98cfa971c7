//! Record batches of 1, 100 and 10,000 records of 100 bytes: `cargo bench -p korvet-benches --bin batch`.
#![allow(missing_docs)] // criterion's macros write public functions

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use korvet_codec::arrow::{Name, RecordColumns, Wanted};
use korvet_codec::batch::{Origin, batch_headers, find_time, validate_batches};
use korvet_codec::columns::{build_batch, to_columns};
use korvet_codec::compression::Compression;
use korvet_codec::legacy::{down_convert, to_messages, to_values, up_convert};

const LIMIT: usize = 1 << 30;
const SIZES: [usize; 3] = [1, 100, 10_000];
const VALUE: usize = 100;

/// Times, value offsets, values and validity of this many records.
struct Source([(&'static str, Vec<u8>); 4]);

impl Source {
    fn new(count: usize) -> Self {
        let timestamps = (0..count as i64).flat_map(|i| (1_700_000_000_000 + i / 10).to_ne_bytes()).collect();
        let offsets = (0..=count).flat_map(|i| ((i * VALUE) as i32).to_ne_bytes()).collect();
        let values =
            (0..count * VALUE).map(|i| b"some text, some numbers: "[i % 25] ^ (i % 7) as u8).collect();
        Self([
            ("timestamp", timestamps),
            ("value_offsets", offsets),
            ("value", values),
            ("value_valid", vec![1; count]),
        ])
    }

    fn build_batch(&self, compression: Compression) -> Vec<u8> {
        let named = self.0.each_ref().map(|(name, data)| (*name, &data[..]));
        build_batch(&named, compression, 0, Origin::NONE).expect("the columns agree")
    }
}

/// All columns of Spark's Kafka row but the headers.
fn records(batch: &[u8]) -> RecordColumns {
    use Name::{Key, Offset, Partition, Timestamp, TimestampType, Topic, Value};
    let wanted = Wanted {
        topic: "orders",
        partition: 0,
        columns: &[Key, Value, Topic, Partition, Offset, Timestamp, TimestampType],
        start: 0,
        end: i64::MAX,
        max_rows: LIMIT,
        max_bytes: LIMIT,
        limit: LIMIT,
        aborted: &[],
    };
    wanted.read(batch).expect("a good batch")
}

fn batches(c: &mut Criterion) {
    for count in SIZES {
        let source = Source::new(count);
        let plain = source.build_batch(Compression::None);
        let log = to_messages(&plain, LIMIT).expect("a good batch").bytes;
        let mut old = log.clone();
        let size = down_convert(&mut old, 0, i64::MAX).expect("a good log");
        old.truncate(size);
        let mut group = c.benchmark_group("batch");
        group.throughput(Throughput::Elements(count as u64));
        let mut run = |name: &str, work: &mut dyn FnMut()| {
            group.bench_function(BenchmarkId::new(name, count), |b| b.iter(&mut *work));
        };
        run("validate_batches", &mut || drop(black_box(validate_batches(black_box(&plain), LIMIT))));
        run("batch_headers", &mut || drop(black_box(batch_headers(black_box(&plain), true))));
        run("find_time", &mut || drop(black_box(find_time(black_box(&plain), i64::MAX, LIMIT, i64::MIN))));
        run("page", &mut || drop(black_box(records(black_box(&plain)))));
        run("to_columns", &mut || drop(black_box(to_columns(black_box(&plain), LIMIT))));
        run("build_batch", &mut || drop(black_box(source.build_batch(Compression::None))));
        run("up_convert", &mut || drop(black_box(up_convert(black_box(&old), LIMIT, LIMIT, 1 << 16))));
        run("down_convert", &mut || drop(black_box(down_convert(black_box(&mut log.clone()), 0, i64::MAX))));
        run("to_messages", &mut || drop(black_box(to_messages(black_box(&plain), LIMIT))));
        run("to_values", &mut || drop(black_box(to_values(black_box(&log), 0, LIMIT, LIMIT))));
        for compression in &Compression::ALL[1..] {
            let packed = source.build_batch(*compression);
            let name = format!("check {compression:?}");
            run(&name, &mut || drop(black_box(validate_batches(black_box(&packed), LIMIT))));
            run(&format!("assemble {compression:?}"), &mut || {
                drop(black_box(source.build_batch(*compression)));
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(1))
        .warm_up_time(std::time::Duration::from_millis(300));
    targets = batches
}
criterion_main!(benches);
