//! What one version of a shape looks like on the wire, worked out once.

use super::table::{Field, Initial, Kind};
use super::write::write_default;
use crate::{Code, Error, Result};

/// A struct in one version.
#[derive(Debug)]
pub(super) struct Plan {
    /// The fields that stand one after another.
    pub(super) steps: Vec<Step>,
    /// The fields in the section of tagged fields, by ascending tag.
    pub(super) tagged: Vec<Step>,
    /// The fields that this version does not have.
    pub(super) absent: Vec<Step>,
    /// Whether a section of tagged fields ends it.
    pub(super) flexible: bool,
    /// The fewest bytes it can take.
    pub(super) smallest: usize,
}

/// A field in one version.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) slot: usize,
    /// Which of its struct's fields it is, versions or not.
    pub(super) place: usize,
    pub(super) name: Box<str>,
    pub(super) tag: u32,
    pub(super) form: Form,
    pub(super) nullable: bool,
    pub(super) initial: Initial,
    /// The default as this version writes it: what a missing value becomes, and what leaves a tagged field out.
    pub(super) written: Box<[u8]>,
}

/// How a value is written. `compact`: lengths are varints of length + 1.
#[derive(Debug)]
pub(super) enum Form {
    Bool,
    Integer(Kind, i64, i64),
    Float64,
    Uuid,
    Text { compact: bool },
    Bytes { compact: bool },
    Records { compact: bool },
    Tags,
    Array { of: Box<Form>, compact: bool, smallest: usize },
    Struct(Plan),
}

impl Plan {
    /// The plan of `fields` in `version`. Each field takes the next number of `slots`, versions or not, so that numbers
    /// are the same in every version's plan.
    pub(super) fn new(fields: &[Field], version: i16, flexible: bool, slots: &mut usize) -> Result<Self> {
        let mut plan =
            Self { steps: Vec::new(), tagged: Vec::new(), absent: Vec::new(), flexible, smallest: 0 };
        for (place, field) in fields.iter().enumerate() {
            let step = Step::new(field, place, version, flexible, slots)
                .map_err(|error| error.within(&format!(".{}", field.name)))?;
            let here = (field.since..=field.until).contains(&version);
            if !here || (field.tag.is_some() && !flexible) {
                plan.absent.push(step);
            } else if field.tag.is_some() {
                plan.tagged.push(step);
            } else {
                let maybe_null = step.nullable && matches!(step.form, Form::Struct(_));
                plan.smallest += if maybe_null { 1 } else { step.form.smallest() };
                plan.steps.push(step);
            }
        }
        plan.tagged.sort_by_key(|step| step.tag);
        plan.smallest += usize::from(flexible);
        Ok(plan)
    }

    /// Every field, of this version or not.
    pub(super) fn all(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(&self.tagged).chain(&self.absent)
    }
}

impl Step {
    fn new(field: &Field, place: usize, version: i16, flexible: bool, slots: &mut usize) -> Result<Self> {
        let slot = *slots;
        *slots += 1;
        let (array, kind) = Kind::parse(&field.kind)?;
        let single = match kind {
            Kind::Bool => Form::Bool,
            Kind::Float64 => Form::Float64,
            Kind::Uuid => Form::Uuid,
            Kind::Text => Form::Text { compact: flexible },
            Kind::LegacyText => Form::Text { compact: false },
            Kind::Bytes => Form::Bytes { compact: flexible },
            Kind::Records => Form::Records { compact: flexible },
            Kind::Tags => Form::Tags,
            Kind::Struct => Form::Struct(Plan::new(&field.fields, version, flexible, slots)?),
            Kind::Int8 | Kind::Int16 | Kind::Uint16 | Kind::Int32 | Kind::Uint32 | Kind::Int64 => {
                let (low, high) = kind.range().unwrap_or_default();
                Form::Integer(kind, low, high)
            }
        };
        let form = if array {
            let smallest = single.smallest();
            if smallest == 0 && (field.since..=field.until).contains(&version) {
                // Such an array could announce any number of elements and be believed.
                return Error::fail(
                    Code::BadSchema,
                    format!("its elements take no bytes in version {version}"),
                );
            }
            Form::Array { of: Box::new(single), compact: flexible, smallest }
        } else {
            single
        };
        let nullable = version >= field.nullable;
        let initial = match &field.default {
            Initial::Null if !nullable => Initial::Zero,
            other => other.clone(),
        };
        let mut written = Vec::new();
        write_default(&mut written, &form, nullable, &initial);
        Ok(Self {
            slot,
            place,
            name: field.name.as_str().into(),
            tag: field.tag.unwrap_or_default(),
            form,
            nullable,
            initial: field.default.clone(),
            written: written.into(),
        })
    }
}

impl Form {
    /// The fewest bytes a value that is not null can take.
    fn smallest(&self) -> usize {
        let length = |compact: &bool, plain: usize| if *compact { 1 } else { plain };
        match self {
            Self::Bool | Self::Tags => 1,
            Self::Integer(kind, ..) => match kind {
                Kind::Int8 => 1,
                Kind::Int16 | Kind::Uint16 => 2,
                Kind::Int64 => 8,
                _ => 4,
            },
            Self::Float64 => 8,
            Self::Uuid => 16,
            Self::Text { compact } => length(compact, 2),
            Self::Bytes { compact } | Self::Records { compact } | Self::Array { compact, .. } => {
                length(compact, 4)
            }
            Self::Struct(plan) => plan.smallest,
        }
    }
}
