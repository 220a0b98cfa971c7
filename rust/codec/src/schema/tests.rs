use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const FLEXIBLE: i16 = 2;
const LATEST: i16 = 3;

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

/// Every kind, every way of being absent or null.
fn table() -> Vec<Field> {
    let inner = || vec![field("id", "int32"), nullable("note", "string"), field("flags", "[]int8")];
    let tagged = |tag, field: Field| Field { tag: Some(tag), since: FLEXIBLE, ..field };
    vec![
        field("small", "int8"),
        Field { default: Initial::Int(-1), since: 1, ..field("short", "int16") },
        field("port", "uint16"),
        field("crc", "uint32"),
        Field { until: 1, ..field("old", "int64") },
        field("ratio", "float64"),
        field("yes", "bool"),
        field("id", "uuid"),
        field("name", "string"),
        nullable("client", "legacy_string"),
        nullable("data", "bytes"),
        nullable("records", "records"),
        Field { since: FLEXIBLE, ..field("head", "tags") },
        nullable("names", "[]string"),
        Field { fields: inner(), ..nullable("rows", "[]") },
        Field { fields: inner(), ..nullable("one", "{}") },
        Field { fields: inner(), ..field("always", "{}") },
        tagged(3, Field { fields: inner(), ..field("extra", "[]") }),
        tagged(0, Field { default: Initial::Int(7), ..field("epoch", "int32") }),
        tagged(9, Field { since: LATEST, fields: inner(), ..nullable("leader", "{}") }),
    ]
}

fn schema() -> Schema {
    Schema::new("Test", &table(), 0, LATEST, FLEXIBLE).unwrap()
}

fn encode(schema: &Schema, value: &Value, version: i16) -> Result<Vec<u8>> {
    let mut parts = Parts::new(usize::MAX);
    match schema.encode(value, version, &Shape { schema, data: &[] }, &mut parts) {
        Ok(()) => Ok(parts.into_inner().0),
        Err(Stop::Rule(error)) => Err(error),
        Err(Stop::Foreign(never)) => match never {},
    }
}

fn decode(schema: &Schema, data: &[u8], version: i16, limit: usize) -> Result<Value> {
    match schema.decode(data, version, limit, &mut Shape { schema, data }) {
        Ok(value) => Ok(value),
        Err(Stop::Rule(error)) => Err(error),
        Err(Stop::Foreign(never)) => match never {},
    }
}

fn structure(fields: &[(&str, Value)]) -> Value {
    Value::Struct(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

fn scalar(kind: &str) -> BoxedStrategy<Value> {
    let bytes = |size| prop::collection::vec(any::<u8>(), size).prop_map(Value::Bytes).boxed();
    match kind {
        "bool" => any::<bool>().prop_map(Value::Bool).boxed(),
        "int8" => any::<i8>().prop_map(|value| Value::Int(value.into())).boxed(),
        "int16" => any::<i16>().prop_map(|value| Value::Int(value.into())).boxed(),
        "uint16" => any::<u16>().prop_map(|value| Value::Int(value.into())).boxed(),
        "int32" => any::<i32>().prop_map(|value| Value::Int(value.into())).boxed(),
        "uint32" => any::<u32>().prop_map(|value| Value::Int(value.into())).boxed(),
        "int64" => any::<i64>().prop_map(Value::Int).boxed(),
        "float64" => (-1e9..1e9).prop_map(Value::Float).boxed(),
        "uuid" => bytes(16..17),
        "string" | "legacy_string" => ".{0,20}".prop_map(Value::Text).boxed(),
        "tags" => tags().boxed(),
        _ => bytes(0..200),
    }
}

fn tags() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(20_u32.., prop::collection::vec(any::<u8>(), 0..5), 1..4)
        .prop_map(Value::Tags)
}

fn value_of(field: &Field, version: i16) -> BoxedStrategy<Value> {
    let present = match field.kind.as_str() {
        "[]" => prop::collection::vec(values(&field.fields, version), 0..4).prop_map(Value::List).boxed(),
        "{}" => values(&field.fields, version).boxed(),
        kind => match kind.strip_prefix("[]") {
            Some(kind) => prop::collection::vec(scalar(kind), 0..4).prop_map(Value::List).boxed(),
            None => scalar(kind),
        },
    };
    if version >= field.nullable {
        return prop_oneof![1 => Just(Value::Null), 4 => present].boxed();
    }
    present
}

/// Structs with some of the fields missing, and sometimes unknown tags.
fn values(fields: &[Field], version: i16) -> impl Strategy<Value = Value> + use<> {
    let field = |field: &Field| {
        let name = field.name.clone();
        prop::option::weighted(0.8, value_of(field, version)).prop_map(move |value| (name.clone(), value))
    };
    let fields: Vec<_> = fields.iter().map(field).collect();
    let flexible = version >= FLEXIBLE;
    let unknown = prop::option::weighted(0.3, tags()).prop_map(move |tags| tags.filter(|_| flexible));
    (fields, unknown).prop_map(|(fields, unknown)| {
        let whole = fields.into_iter().chain([(TAGGED.to_owned(), unknown)]);
        Value::Struct(whole.filter_map(|(name, value)| value.map(|value| (name, value))).collect())
    })
}

fn message() -> impl Strategy<Value = (i16, Value)> {
    (0..=LATEST).prop_flat_map(|version| (Just(version), values(&table(), version)))
}

/// Whether every value given is in what came back.
fn kept(given: &Value, back: &Value, table: &[Field], version: i16) -> bool {
    let (Value::Struct(given), Value::Struct(back)) = (given, back) else { return given == back };
    given.iter().all(|(name, value)| {
        let Some(field) = table.iter().find(|field| field.name == *name) else {
            return back.get(name) == Some(value);
        };
        let here =
            (field.since..=field.until).contains(&version) && (field.tag.is_none() || version >= FLEXIBLE);
        match (value, &back[name]) {
            _ if !here => true,
            (Value::List(given), Value::List(back)) => {
                given.len() == back.len()
                    && given.iter().zip(back).all(|(given, back)| kept(given, back, &field.fields, version))
            }
            (given, back) => kept(given, back, &field.fields, version),
        }
    })
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded((version, value) in message()) {
        let schema = schema();
        let bytes = encode(&schema, &value, version).unwrap();
        let back = decode(&schema, &bytes, version, 1000).unwrap();
        prop_assert!(kept(&value, &back, &table(), version), "{value:?}\n{back:?}");
        prop_assert_eq!(encode(&schema, &back, version).unwrap(), bytes);
    }

    #[test]
    fn every_prefix_and_every_tail_is_refused((version, value) in message()) {
        let schema = schema();
        let mut bytes = encode(&schema, &value, version).unwrap();
        for end in 0..bytes.len() {
            let code = decode(&schema, &bytes[..end], version, 1000).unwrap_err().code;
            prop_assert!(matches!(code, Code::Truncated | Code::CountExceedsInput), "{code:?} at {end}");
        }
        bytes.push(0);
        prop_assert_eq!(decode(&schema, &bytes, version, 1000).unwrap_err().code, Code::TrailingBytes);
    }

    #[test]
    fn damaged_bytes_give_an_error_or_a_message_that_stands(
        (version, value) in message(), at in any::<prop::sample::Index>(), byte: u8,
    ) {
        let schema = schema();
        let mut bytes = encode(&schema, &value, version).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(value) = decode(&schema, &bytes, version, 1000) {
            let again = encode(&schema, &value, version).unwrap();
            prop_assert_eq!(decode(&schema, &again, version, 1000).unwrap(), value);
        }
    }
}

#[test]
fn golden_bytes_of_both_forms() {
    let fields = [
        field("text", "string"),
        nullable("none", "string"),
        field("numbers", "[]int16"),
        nullable("data", "bytes"),
        Field { fields: vec![field("a", "int8")], ..nullable("one", "{}") },
        Field { tag: Some(1), ..field("late", "int8") },
    ];
    let schema = Schema::new("Golden", &fields, 1, 2, 2).unwrap();
    let value = structure(&[
        ("text", Value::Text("ab".into())),
        ("numbers", Value::List(vec![Value::Int(258)])),
        ("one", structure(&[("a", Value::Int(-1))])),
        ("late", Value::Int(5)),
        (TAGGED, Value::Tags(BTreeMap::from([(0, vec![9]), (200, vec![])]))),
    ]);
    let plain = b"\0\x02ab\xff\xff\0\0\0\x01\x01\x02\xff\xff\xff\xff\x01\xff";
    assert_eq!(encode(&schema, &value, 1).unwrap(), plain);
    let compact = b"\x03ab\0\x02\x01\x02\0\x01\xff\0\x03\0\x01\x09\x01\x01\x05\xc8\x01\0";
    assert_eq!(encode(&schema, &value, 2).unwrap(), compact);
}

#[test]
fn broken_bytes_have_their_codes() {
    let texts = [field("texts", "[]string")];
    let plain = Schema::new("Plain", &texts, 0, 0, NEVER).unwrap();
    let compact = Schema::new("Compact", &texts, 0, 0, 0).unwrap();
    let tagged = [Field { tag: Some(1), ..field("late", "int8") }];
    let tagged = Schema::new("Tagged", &tagged, 0, 0, 0).unwrap();
    let cases: [(&Schema, &[u8], Code); 17] = [
        (&plain, b"\x7f\xff\xff\xff", Code::CountExceedsInput),
        (&plain, b"\xff\xff\xff\xff", Code::UnexpectedNull),
        (&plain, b"\xff\xff\xff\xfe", Code::NegativeLength),
        (&plain, b"\0\0\0\x01\xff\xff", Code::UnexpectedNull),
        (&plain, b"\0\0\0\x01\xff\xfe", Code::NegativeLength),
        (&plain, b"\0\0\0\x01\0\x01\xff", Code::BadUtf8),
        (&plain, b"\0\0\0\x01\0\x02a", Code::Truncated),
        (&compact, b"\xff\xff\xff\xff\x0f\0", Code::CountExceedsInput),
        (&compact, b"\xff\xff\xff\xff\xff\0", Code::VarintOverflow),
        (&compact, b"\0\0", Code::UnexpectedNull),
        (&compact, b"\x02\0\0", Code::UnexpectedNull),
        (&tagged, b"\xff\xff\xff\xff\x0f", Code::CountExceedsInput),
        (&tagged, b"\x01\x01\xff\xff\xff\xff\x07\x01", Code::Truncated),
        (&tagged, b"\x02\x05\0\x05\0", Code::DuplicateTag),
        (&tagged, b"\x02\x05\0\x04\0", Code::DuplicateTag),
        (&tagged, b"\x01\x01\x02\0\0", Code::TrailingBytes),
        (&tagged, b"\x01\x01\0\0", Code::Truncated),
    ];
    for (schema, data, code) in cases {
        let error = decode(schema, data, 0, 100).unwrap_err();
        assert_eq!(error.code, code, "{} {data:?}: {error}", schema.name());
    }
    assert_eq!(decode(&plain, b"", 1, 100).unwrap_err().code, Code::UnsupportedVersion);
    assert_eq!(decode(&plain, b"\0\0\0\x02\0\0\0\0", 0, 1).unwrap_err().code, Code::TooManyElements);
    assert_eq!(decode(&tagged, b"\x02\x05\0\x06\0", 0, 1).unwrap_err().code, Code::TooManyElements);
}

#[test]
fn strings_end_at_16_bits_in_compact_forms_too() {
    let schema = Schema::new("Named", &[field("name", "string")], 0, 1, 1).unwrap();
    let message = |size: usize| structure(&[("name", Value::Text("x".repeat(size)))]);
    for version in [0, 1] {
        let longest = encode(&schema, &message(32_767), version).unwrap();
        assert!(decode(&schema, &longest, version, 0).is_ok());
        assert_eq!(encode(&schema, &message(32_768), version).unwrap_err().code, Code::BadValue);
    }
    let mut compact = Vec::new();
    crate::varint::write_u32(&mut compact, 32_769);
    // Before anything is said of the bytes that are not there.
    assert_eq!(decode(&schema, &compact, 1, 0).unwrap_err().code, Code::Oversize);
    compact.extend("x".repeat(32_769).bytes());
    assert_eq!(decode(&schema, &compact, 1, 0).unwrap_err().code, Code::Oversize);
}

#[test]
fn an_error_names_the_place() {
    let schema = schema();
    let rows = |id| Value::List(vec![structure(&[]), structure(&[("id", id)])]);
    let cases = [
        (structure(&[("zzz", Value::Null)]), "BAD_VALUE: Test v1.zzz: there is no such field"),
        (structure(&[("rows", rows(Value::Null))]), "BAD_VALUE: Test v1.rows[1].id: null is not legal here"),
        (
            structure(&[("rows", rows(Value::Int(1 << 31)))]),
            "BAD_VALUE: Test v1.rows[1].id: 2147483648 is not in -2147483648..2147483647",
        ),
        (structure(&[("id", Value::Bytes(vec![0; 15]))]), "BAD_VALUE: Test v1.id: 16 bytes is needed"),
        (
            structure(&[("name", Value::Text("x".repeat(32768)))]),
            "BAD_VALUE: Test v1.name: a size of 32768; 32767 can be written",
        ),
    ];
    for (value, message) in cases {
        assert_eq!(encode(&schema, &value, 1).unwrap_err().to_string(), message);
    }
    let tag = |tag| structure(&[(TAGGED, Value::Tags(BTreeMap::from([(tag, vec![])])))]);
    let error = encode(&schema, &tag(3), 2).unwrap_err();
    assert_eq!(error.to_string(), "BAD_VALUE: Test v2._tagged: tag 3 has a field of its own");
}

#[test]
fn large_records_are_lent_and_counted() {
    let fields = [field("before", "int8"), field("records", "records"), field("after", "int8")];
    let schema = Schema::new("Lend", &fields, 0, 0, NEVER).unwrap();
    for (size, lent) in [(9, 0), (10, 1)] {
        let mut parts = Parts::new(10);
        parts.leave_length();
        let value = structure(&[("records", Value::Bytes(vec![1; size]))]);
        schema.encode(&value, 0, &Shape { schema: &schema, data: &[] }, &mut parts).unwrap();
        parts.seal().unwrap();
        let (bytes, parts) = parts.into_inner();
        assert_eq!(parts.len(), lent);
        assert!(parts.iter().all(|(at, records)| *at == 9 && records.len() == size));
        assert_eq!(i32::from_be_bytes(bytes[..4].try_into().unwrap()), 6 + size as i32);
    }
}

#[test]
fn tables_that_contradict_themselves_are_refused() {
    let cases = [
        (vec![field("a", "int7")], "Bad.a: no such kind: \"int7\""),
        (vec![field("a", "int8"), field("a", "int8")], "Bad.a: the name is taken"),
        (vec![field(TAGGED, "int8")], "Bad._tagged: the name is taken"),
        (vec![Field { since: 2, until: 1, ..field("a", "int8") }], "Bad.a: no version has it"),
        (vec![nullable("a", "int8")], "Bad.a: this kind cannot be null"),
        (
            vec![Field { default: Initial::Null, ..field("a", "string") }],
            "Bad.a: the default does not fit the kind",
        ),
        (vec![Field { tag: Some(1), ..nullable("a", "string") }], "Bad.a: the default does not fit the kind"),
        (
            vec![Field { default: Initial::Int(128), ..field("a", "int8") }],
            "Bad.a: the default does not fit the kind",
        ),
        (vec![field("a", "[]")], "Bad.a: a struct needs fields, and nothing else may have them"),
        (
            vec![Field { tag: Some(1), ..field("a", "int8") }, Field { tag: Some(1), ..field("b", "int8") }],
            "Bad.b: the tag is taken",
        ),
        (
            vec![Field { fields: vec![field("b", "[]tags")], ..field("a", "{}") }],
            "Bad.a.b: no such kind: \"[]tags\"",
        ),
    ];
    for (fields, message) in cases.into_iter().chain([(
        vec![Field { fields: vec![Field { since: 1, ..field("b", "int8") }], ..field("a", "[]") }],
        "Bad.a: its elements take no bytes in version 0",
    )]) {
        let error = Schema::new("Bad", &fields, 0, 1, 1).unwrap_err();
        assert_eq!((error.code, error.message.as_ref()), (Code::BadSchema, message));
    }
    assert_eq!(Schema::new("Bad", &[], 2, 1, 0).unwrap_err().code, Code::BadSchema);
    let mut deep = field("leaf", "int8");
    for _ in 0..20 {
        deep = Field { fields: vec![deep], ..field("nest", "{}") };
    }
    assert_eq!(Schema::new("Bad", &[deep], 0, 0, 0).unwrap_err().code, Code::BadSchema);
}
