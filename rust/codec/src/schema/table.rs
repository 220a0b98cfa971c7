//! The rows a shape is described by, and the rules that a table of them must keep.

use std::collections::HashSet;

use crate::{Code, Error, Result};

/// A version that no message reaches.
pub const NEVER: i16 = i16::MAX;

/// The key under which unknown tagged fields are kept.
pub const TAGGED: &str = "_tagged";

/// The slot of the values' [`TAGGED`] key. A table's fields have the slots from 1 on, depth first.
pub const TAGGED_SLOT: usize = 0;

/// Bytes of a string. Compact forms could announce more, but Kafka has no such strings:
/// <https://kafka.apache.org/protocol> has lengths of 16 bits, and its own clients and brokers refuse more.
pub(super) const LONGEST_TEXT: usize = i16::MAX as usize;

/// Structs inside structs, at most. Only a table can nest; input never decides on depth.
const DEEPEST: usize = 16;

/// One row: a field and the versions it lives in.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its key in the values.
    pub name: String,
    /// The field's kind; the words are listed at [`Kind::parse`].
    pub kind: String,
    /// First version with it.
    pub since: i16,
    /// Last version with it.
    pub until: i16,
    /// First version in which null is legal.
    pub nullable: i16,
    /// The value where it is absent.
    pub default: Initial,
    /// Its number, if it is a tagged field.
    pub tag: Option<u32>,
    /// The rows of a struct.
    pub fields: Vec<Field>,
}

/// A default value.
#[derive(Debug, Clone, PartialEq)]
pub enum Initial {
    /// The kind's zero: false, 0, "", no bytes, no elements, or a struct of defaults.
    Zero,
    /// Null.
    Null,
    /// A bool.
    Bool(bool),
    /// An integer of any width.
    Int(i64),
    /// A float64.
    Float(f64),
    /// A string.
    Text(String),
    /// Bytes, or the 16 of a uuid.
    Bytes(Vec<u8>),
}

/// A field's kind, the same in all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Float64,
    Uuid,
    Text,
    LegacyText,
    Bytes,
    Records,
    Tags,
    Struct,
}

impl Kind {
    /// (whether it is an array, of what). `BAD_SCHEMA` for an unknown word.
    pub(super) fn parse(word: &str) -> Result<(bool, Self)> {
        let (array, single) = match word.strip_prefix("[]") {
            Some("") => return Ok((true, Self::Struct)),
            Some(rest) => (true, rest),
            None => (false, word),
        };
        let kind = match single {
            "bool" => Self::Bool,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "uint16" => Self::Uint16,
            "int32" => Self::Int32,
            "uint32" => Self::Uint32,
            "int64" => Self::Int64,
            "float64" => Self::Float64,
            "uuid" => Self::Uuid,
            "string" => Self::Text,
            "bytes" => Self::Bytes,
            "records" => Self::Records,
            "legacy_string" if !array => Self::LegacyText,
            "tags" if !array => Self::Tags,
            "{}" if !array => Self::Struct,
            _ => return Error::fail(Code::BadSchema, format!("no such kind: {word:?}")),
        };
        Ok((array, kind))
    }

    fn may_be_null(self) -> bool {
        matches!(self, Self::Text | Self::LegacyText | Self::Bytes | Self::Records | Self::Struct)
    }

    /// The integers it can hold; None for a kind that is no integer.
    pub(super) fn range(self) -> Option<(i64, i64)> {
        Some(match self {
            Self::Int8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
            Self::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            Self::Uint16 => (0, i64::from(u16::MAX)),
            Self::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            Self::Uint32 => (0, i64::from(u32::MAX)),
            Self::Int64 => (i64::MIN, i64::MAX),
            _ => return None,
        })
    }
}

/// Check a table, depth first. `BAD_SCHEMA` with the path of the row that breaks a rule.
pub(super) fn check(fields: &[Field], depth: usize) -> Result<()> {
    if depth > DEEPEST {
        return Error::fail(Code::BadSchema, "structs are nested too deeply");
    }
    let mut names = HashSet::new();
    for (at, field) in fields.iter().enumerate() {
        let fresh = names.insert(field.name.as_str()) && field.name != TAGGED;
        let rules = [
            (fresh, "the name is taken"),
            (field.since >= 0 && field.since <= field.until, "no version has it"),
            (!fields[..at].iter().any(|other| same_tag(field, other)), "the tag is taken"),
        ];
        let broken = rules.iter().find(|(holds, _)| !holds);
        let outcome = match broken {
            Some((_, what)) => Error::fail(Code::BadSchema, *what),
            None => check_field(field, depth),
        };
        outcome.map_err(|error| error.within(&format!(".{}", field.name)))?;
    }
    Ok(())
}

fn same_tag(one: &Field, other: &Field) -> bool {
    one.tag.is_some() && one.tag == other.tag && one.since <= other.until && other.since <= one.until
}

fn check_field(field: &Field, depth: usize) -> Result<()> {
    let (array, kind) = Kind::parse(&field.kind)?;
    let is_struct = kind == Kind::Struct;
    let nullable = field.nullable < NEVER;
    let rules = [
        (is_struct != field.fields.is_empty(), "a struct needs fields, and nothing else may have them"),
        (!nullable || array || kind.may_be_null(), "this kind cannot be null"),
        (kind != Kind::Tags || field.tag.is_none(), "a section of tagged fields cannot be tagged itself"),
        (default_fits(field, array, kind), "the default does not fit the kind"),
    ];
    match rules.iter().find(|(holds, _)| !holds) {
        Some((_, what)) => Error::fail(Code::BadSchema, *what),
        None => check(&field.fields, depth + 1),
    }
}

fn default_fits(field: &Field, array: bool, kind: Kind) -> bool {
    match &field.default {
        Initial::Zero => true,
        // An absent tagged field is read as null, which must be legal to write back.
        Initial::Null => field.nullable <= if field.tag.is_some() { field.since } else { NEVER - 1 },
        _ if array => false,
        Initial::Bool(_) => kind == Kind::Bool,
        Initial::Int(value) => kind.range().is_some_and(|(low, high)| (low..=high).contains(value)),
        Initial::Float(_) => kind == Kind::Float64,
        Initial::Text(text) => {
            matches!(kind, Kind::Text | Kind::LegacyText) && i16::try_from(text.len()).is_ok()
        }
        Initial::Bytes(bytes) => kind == Kind::Bytes || (kind == Kind::Uuid && bytes.len() == 16),
    }
}
