//! Message shapes by version: described once in a table of fields, then decoded and encoded by walking a plan.
//!
//! Lengths, nulls, compact forms and tagged fields follow <https://kafka.apache.org/protocol> and KIP-482.
//! Depth is given by the table; input never makes the walk recurse.

mod decode;
mod encode;
mod encoding;
mod plan;
mod table;
#[cfg(test)]
mod tests;
mod value;
mod write;

pub use decode::Sink;
pub use encode::{Parts, Source};
pub use table::{Field, Initial, NEVER, TAGGED, TAGGED_SLOT};
pub use value::{Shape, Value};

use crate::reader::Reader;
use crate::{Code, Error, Result, Stop};
use encoding::Plan;

/// A message in all its versions.
#[derive(Debug)]
pub struct Schema {
    name: String,
    lowest: i16,
    plans: Vec<Plan>,
    names: Vec<String>,
}

impl Schema {
    /// Compile `fields` for the versions `lowest..=highest`, flexible from `flexible` on. `BAD_SCHEMA`.
    pub fn new(name: &str, fields: &[Field], lowest: i16, highest: i16, flexible: i16) -> Result<Self> {
        let prefix = |error: Error| error.within(name);
        if lowest < 0 || lowest > highest || highest == NEVER {
            return Error::fail(Code::BadSchema, "no such range of versions").map_err(prefix);
        }
        table::check(fields, 0).map_err(prefix)?;
        let plans = (lowest..=highest)
            .map(|version| plan::compile(fields, version, version >= flexible, &mut (TAGGED_SLOT + 1)))
            .collect::<Result<_>>()
            .map_err(prefix)?;
        let mut names = vec![TAGGED.to_owned()];
        collect_names(fields, &mut names);
        Ok(Self { name: name.to_owned(), lowest, plans, names })
    }

    /// The name that the schema was made with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key of every slot.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Read `data`, all of it, into `sink`. `limit` bounds array elements and unknown tagged fields in all.
    ///
    /// `UNSUPPORTED_VERSION`, `TRUNCATED`, `TRAILING_BYTES`, `NEGATIVE_LENGTH`, `VARINT_OVERFLOW`, `BAD_UTF8`,
    /// `UNEXPECTED_NULL`, `COUNT_EXCEEDS_INPUT`, `TOO_MANY_ELEMENTS`, `DUPLICATE_TAG`, `OVERSIZE` (a string beyond 32,767
    /// bytes).
    pub fn decode<S: Sink>(
        &self,
        data: &[u8],
        version: i16,
        limit: usize,
        sink: &mut S,
    ) -> Result<S::Value, Stop<S::Failure>> {
        let plan = self.plan(version)?;
        let mut walk = decode::Decode { reader: Reader::new(data), sink, left: limit };
        walk.message(plan).map_err(|stop| stop.within(&format!("{} v{version}", self.name)))
    }

    /// Append `value` to `parts`. `UNSUPPORTED_VERSION`, `BAD_VALUE` with the path of the field.
    pub fn encode<S: Source>(
        &self,
        value: &S::Value,
        version: i16,
        source: &S,
        parts: &mut Parts<S::Lent>,
    ) -> Result<(), Stop<S::Failure>> {
        let plan = self.plan(version)?;
        let walk = encode::Encode { source };
        walk.structure(parts, plan, value).map_err(|stop| stop.within(&format!("{} v{version}", self.name)))
    }

    fn plan(&self, version: i16) -> Result<&Plan> {
        let at = i32::from(version) - i32::from(self.lowest);
        let plan = usize::try_from(at).ok().and_then(|at| self.plans.get(at));
        plan.ok_or_else(|| Error::new(Code::UnsupportedVersion, format!("{} v{version}", self.name)))
    }
}

fn collect_names(fields: &[Field], names: &mut Vec<String>) {
    for field in fields {
        names.push(field.name.clone());
        collect_names(&field.fields, names);
    }
}
