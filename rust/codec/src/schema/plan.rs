//! Works out, once for each version, what a shape looks like on the wire.

use super::encoding::{Encoding, Plan, Step};
use super::table::{Field, Initial, Kind};
use super::write::write_default;
use crate::{Code, Error, Result};

/// The plan of `fields` in `version`. Each field takes the next number of `slots`, versions or not, so that numbers
/// are the same in every version's plan.
pub(super) fn compile(fields: &[Field], version: i16, flexible: bool, slots: &mut usize) -> Result<Plan> {
    let mut plan = Plan { steps: Vec::new(), tagged: Vec::new(), absent: Vec::new(), flexible, smallest: 0 };
    for (place, field) in fields.iter().enumerate() {
        let step = step(field, place, version, flexible, slots)
            .map_err(|error| error.within(&format!(".{}", field.name)))?;
        let here = (field.since..=field.until).contains(&version);
        if !here || (field.tag.is_some() && !flexible) {
            plan.absent.push(step);
        } else if field.tag.is_some() {
            plan.tagged.push(step);
        } else {
            let maybe_null = step.nullable && matches!(step.encoding, Encoding::Struct(_));
            plan.smallest += if maybe_null { 1 } else { step.encoding.smallest() };
            plan.steps.push(step);
        }
    }
    plan.tagged.sort_by_key(|step| step.tag);
    plan.smallest += usize::from(flexible);
    Ok(plan)
}

fn step(field: &Field, place: usize, version: i16, flexible: bool, slots: &mut usize) -> Result<Step> {
    let slot = *slots;
    *slots += 1;
    let (array, kind) = Kind::parse(&field.kind)?;
    let single = match kind {
        Kind::Bool => Encoding::Bool,
        Kind::Float64 => Encoding::Float64,
        Kind::Uuid => Encoding::Uuid,
        Kind::Text => Encoding::Text { compact: flexible },
        Kind::LegacyText => Encoding::Text { compact: false },
        Kind::Bytes => Encoding::Bytes { compact: flexible },
        Kind::Records => Encoding::Records { compact: flexible },
        Kind::Tags => Encoding::Tags,
        Kind::Struct => Encoding::Struct(compile(&field.fields, version, flexible, slots)?),
        Kind::Int8 | Kind::Int16 | Kind::Uint16 | Kind::Int32 | Kind::Uint32 | Kind::Int64 => {
            let (low, high) = kind.range().unwrap_or_default();
            Encoding::Integer(kind, low, high)
        }
    };
    let encoding = if array {
        let smallest = single.smallest();
        if smallest == 0 && (field.since..=field.until).contains(&version) {
            // Such an array could announce any number of elements and be believed.
            return Error::fail(Code::BadSchema, format!("its elements take no bytes in version {version}"));
        }
        Encoding::Array { of: Box::new(single), compact: flexible, smallest }
    } else {
        single
    };
    let nullable = version >= field.nullable;
    let initial = match &field.default {
        Initial::Null if !nullable => Initial::Zero,
        other => other.clone(),
    };
    let mut written = Vec::new();
    write_default(&mut written, &encoding, nullable, &initial);
    Ok(Step {
        slot,
        place,
        name: field.name.as_str().into(),
        tag: field.tag.unwrap_or_default(),
        encoding,
        nullable,
        initial: field.default.clone(),
        written: written.into(),
    })
}
