//! A Produce request of 1 and 100 partitions, read into plain values and written again.
#![allow(missing_docs)] // criterion's macros write public functions

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use korvet_codec::schema::{Field, Initial, NEVER, Parts, Schema, Shape, Value};

const VERSION: i16 = 9;
const LIMIT: usize = 10_000;

fn field(name: &str, kind: &str, fields: Vec<Field>) -> Field {
    let (name, kind) = (name.to_owned(), kind.to_owned());
    Field { name, kind, since: 0, until: NEVER, nullable: NEVER, default: Initial::Zero, tag: None, fields }
}

fn produce() -> Schema {
    let partition = vec![field("index", "int32", vec![]), field("records", "records", vec![])];
    let topic = vec![field("name", "string", vec![]), field("partition_data", "[]", partition)];
    let fields = [
        field("correlation_id", "int32", vec![]),
        field("acks", "int16", vec![]),
        field("timeout_ms", "int32", vec![]),
        field("topic_data", "[]", topic),
    ];
    Schema::new("Produce", &fields, 3, VERSION, VERSION).expect("the table is sound")
}

fn structure(fields: [(&str, Value); 2]) -> Value {
    Value::Struct(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn request(partitions: i64) -> Value {
    let partition =
        |index| structure([("index", Value::Int(index)), ("records", Value::Bytes(vec![1; 200]))]);
    let partitions = Value::List((0..partitions).map(partition).collect());
    let topic = structure([("name", Value::Text("orders".into())), ("partition_data", partitions)]);
    Value::Struct(BTreeMap::from([("topic_data".to_owned(), Value::List(vec![topic]))]))
}

fn bench(c: &mut Criterion) {
    let schema = produce();
    for partitions in [1, 100] {
        let value = request(partitions);
        let shape = Shape { schema: &schema, data: &[] };
        let encode = || {
            let mut parts = Parts::new(usize::MAX);
            schema.encode(black_box(&value), VERSION, &shape, &mut parts).expect("it fits the shape");
            parts.into_inner().0
        };
        let data = encode();
        c.bench_function(&format!("schema/encode {partitions} partitions"), |b| b.iter(encode));
        c.bench_function(&format!("schema/decode {partitions} partitions"), |b| {
            b.iter(|| {
                let mut sink = Shape { schema: &schema, data: &data };
                schema.decode(black_box(&data), VERSION, LIMIT, &mut sink).expect("it was just written")
            });
        });
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
