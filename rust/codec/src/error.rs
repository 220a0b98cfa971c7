//! The one error of the codec: a stable code for programs, a sentence for people.

use std::borrow::Cow;

/// The result of every fallible function of the codec.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Bytes that break a rule of the format, or values that do not fit their shape.
///
/// The message says where and what; it never holds payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}", code = self.code.name())]
pub struct Error {
    /// The error, for programs.
    pub code: Code,
    /// The error and its place, for people.
    pub message: Cow<'static, str>,
}

impl Error {
    /// An error of this kind, explained by `message`.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }

    /// The same error, found inside of `place`: messages are built from the inside out, as `topics[3].name: …`.
    #[cold]
    #[must_use]
    pub fn within(mut self, place: &str) -> Self {
        let joint = if self.message.starts_with(['.', '[', ':']) { "" } else { ": " };
        self.message = format!("{place}{joint}{}", self.message).into();
        self
    }

    /// `Err` of the same, so that a failing branch reads in one word.
    #[cold]
    pub fn fail<T>(code: Code, message: impl Into<Cow<'static, str>>) -> Result<T> {
        Err(Self::new(code, message))
    }
}

/// Why a walk stopped: a rule of the format, or whatever its sink or source had to say.
#[derive(Debug)]
pub enum Stop<F> {
    /// The bytes or values break a rule.
    Rule(Error),
    /// The sink or source failed.
    Foreign(F),
}

impl<F> From<Error> for Stop<F> {
    fn from(error: Error) -> Self {
        Self::Rule(error)
    }
}

impl<F> Stop<F> {
    #[cold]
    pub(crate) fn within(self, place: &str) -> Self {
        match self {
            Self::Rule(error) => Self::Rule(error.within(place)),
            foreign @ Self::Foreign(_) => foreign,
        }
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// Every way in which bytes or values can be wrong. The names are part of the contract.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// All of them, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name that Python and `korvet_reference` see.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

impl Code {
    /// Whether bytes did not decompress, or to more than was allowed.
    #[must_use]
    pub const fn is_of_compression(self) -> bool {
        matches!(self, Self::CorruptCompression | Self::DecompressionLimit)
    }
}

codes! {
    // Any input.
    /// The input ends inside a value.
    Truncated = "TRUNCATED",
    /// A frame, a reply or a string is larger than its limit.
    Oversize = "OVERSIZE",
    /// A length is below zero where only -1 (null) or nothing may be.
    NegativeLength = "NEGATIVE_LENGTH",
    /// A variable-length integer is longer, or wider, than its type.
    VarintOverflow = "VARINT_OVERFLOW",
    /// Text is not UTF-8.
    BadUtf8 = "BAD_UTF8",
    /// Null where the shape does not allow it.
    UnexpectedNull = "UNEXPECTED_NULL",
    /// An array announces more elements than the rest of the input can hold.
    CountExceedsInput = "COUNT_EXCEEDS_INPUT",
    /// Bytes are left over after the last field.
    TrailingBytes = "TRAILING_BYTES",
    /// More array elements, or records, than the limit allows.
    TooManyElements = "TOO_MANY_ELEMENTS",
    /// A number does not fit where it should go.
    OutOfRange = "OUT_OF_RANGE",

    // Message shapes.
    /// The shape does not have this version.
    UnsupportedVersion = "UNSUPPORTED_VERSION",
    /// A value given by the caller does not fit its field.
    BadValue = "BAD_VALUE",
    /// A table of fields contradicts itself.
    BadSchema = "BAD_SCHEMA",
    /// Tagged fields are repeated or not in ascending order.
    DuplicateTag = "DUPLICATE_TAG",

    // Record batches and message sets.
    /// The format's version byte is not one that is read here.
    BadMagic = "BAD_MAGIC",
    /// The checksum does not match the bytes.
    BadCrc = "BAD_CRC",
    /// A batch or message length is not possible.
    BadLength = "BAD_LENGTH",
    /// A batch's record count does not agree with its records or offsets.
    BadCount = "BAD_COUNT",
    /// Offsets inside a batch are not what the format demands.
    BadOffset = "BAD_OFFSET",
    /// Attribute bits that are unknown, or not allowed from this sender.
    BadAttributes = "BAD_ATTRIBUTES",
    /// A record's inner lengths do not add up.
    BadRecord = "BAD_RECORD",
    /// Columns do not agree with each other in length or order.
    BadColumns = "BAD_COLUMNS",

    // Compression.
    /// No such compression.
    UnknownCompression = "UNKNOWN_COMPRESSION",
    /// Compressed bytes that do not decompress.
    CorruptCompression = "CORRUPT_COMPRESSION",
    /// Decompressing would give more bytes than allowed.
    DecompressionLimit = "DECOMPRESSION_LIMIT",
    /// A compressed message inside a compressed message.
    NestedCompression = "NESTED_COMPRESSION",

    // Redis.
    /// Bytes that are no RESP reply.
    BadResp = "BAD_RESP",

    // Names.
    /// A regular expression that cannot be read, or is too large.
    BadPattern = "BAD_PATTERN",
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_shouted() {
        let names: HashSet<_> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        assert!(
            names
                .iter()
                .all(|name| name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'))
        );
    }

    #[test]
    fn an_error_reads_as_code_and_sentence() {
        let error = Error::new(Code::Truncated, "at 3");
        assert_eq!(error.to_string(), "TRUNCATED: at 3");
        assert_eq!(Error::fail::<()>(Code::Truncated, "at 3"), Err(error));
    }
}
