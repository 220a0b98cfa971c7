//! Any bytes as a message of any version: an error, or values that are written and read back the same.
#![no_main]

use std::sync::LazyLock;

use korvet_codec::Stop;
use korvet_codec::schema::{Field, Initial, NEVER, Parts, Schema, Shape, Value};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1000;
const FLEXIBLE: i16 = 2;
static SCHEMA: LazyLock<Schema> = LazyLock::new(schema);

fn field(name: &str, kind: &str) -> Field {
    let (name, kind) = (name.to_owned(), kind.to_owned());
    Field {
        name,
        kind,
        since: 0,
        until: NEVER,
        nullable: NEVER,
        default: Initial::Zero,
        tag: None,
        fields: vec![],
    }
}

fn nullable(name: &str, kind: &str) -> Field {
    Field { nullable: 1, default: Initial::Null, ..field(name, kind) }
}

fn schema() -> Schema {
    let inner = || vec![field("id", "int32"), nullable("note", "string"), field("flags", "[]int8")];
    let fields = [
        field("short", "int16"),
        nullable("client", "legacy_string"),
        Field { since: FLEXIBLE, ..field("head", "tags") },
        field("yes", "bool"),
        nullable("names", "[]string"),
        nullable("data", "bytes"),
        nullable("records", "records"),
        Field { fields: inner(), ..nullable("rows", "[]") },
        Field { fields: inner(), ..nullable("one", "{}") },
        Field { until: 1, ..field("old", "uuid") },
        Field { tag: Some(0), since: FLEXIBLE, default: Initial::Int(7), ..field("epoch", "int64") },
        Field { tag: Some(3), since: FLEXIBLE, fields: inner(), ..field("extra", "[]") },
    ];
    Schema::new("Fuzz", &fields, 0, FLEXIBLE, FLEXIBLE).expect("the table is sound")
}

fn decode(schema: &Schema, data: &[u8], version: i16) -> Option<Value> {
    match schema.decode(data, version, LIMIT, &mut Shape { schema, data }) {
        Ok(value) => Some(value),
        Err(Stop::Rule(_)) => None,
        Err(Stop::Foreign(never)) => match never {},
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&version, bytes)) = data.split_first() else { return };
    let (schema, version) = (&*SCHEMA, i16::from(version % 3));
    let Some(value) = decode(schema, bytes, version) else { return };
    let mut parts = Parts::new(usize::MAX);
    let shape = Shape { schema, data: &[] };
    schema.encode(&value, version, &shape, &mut parts).expect("what was read can be written");
    let (again, _) = parts.into_inner();
    assert!(again.len() <= bytes.len(), "the shortest form is not longer than what was read");
    assert_eq!(decode(schema, &again, version), Some(value));
});
