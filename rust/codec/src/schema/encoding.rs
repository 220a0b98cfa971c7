//! A message shape in one version: the order of the fields, and how each is encoded.

use super::table::{Initial, Kind};

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
    /// The index of the field in its struct, counted over all versions.
    pub(super) place: usize,
    pub(super) name: Box<str>,
    pub(super) tag: u32,
    pub(super) encoding: Encoding,
    pub(super) nullable: bool,
    pub(super) initial: Initial,
    /// The default as this version writes it: what a missing value becomes, and what leaves a tagged field out.
    pub(super) written: Box<[u8]>,
}

/// How a value is written. `compact`: lengths are varints of length + 1.
#[derive(Debug)]
pub(super) enum Encoding {
    Bool,
    Integer(Kind, i64, i64),
    Float64,
    Uuid,
    Text { compact: bool },
    Bytes { compact: bool },
    Records { compact: bool },
    Tags,
    Array { of: Box<Encoding>, compact: bool, smallest: usize },
    Struct(Plan),
}

impl Plan {
    /// Every field, of this version or not.
    pub(super) fn all(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(&self.tagged).chain(&self.absent)
    }
}

impl Encoding {
    /// The fewest bytes a value that is not null can take.
    pub(super) fn smallest(&self) -> usize {
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
