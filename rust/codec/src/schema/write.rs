//! Scalars, lengths and defaults as bytes.

use super::encoding::Encoding;
use super::table::{Initial, Kind};
use crate::{Code, Error, Result, varint};

/// `size`, or `BAD_VALUE` above `most`.
pub(super) fn bounded(size: usize, most: usize) -> Result<usize> {
    if size > most {
        return Error::fail(Code::BadValue, format!("a size of {size}; {most} can be written"));
    }
    Ok(size)
}

/// The length of a string.
pub(super) fn write_text_length(out: &mut Vec<u8>, compact: bool, size: usize) {
    if compact {
        varint::write_u32(out, size as u32 + 1);
    } else {
        out.extend((size as i16).to_be_bytes());
    }
}

/// The length of bytes, or the count of an array.
pub(super) fn write_length(out: &mut Vec<u8>, compact: bool, size: usize) {
    if compact {
        varint::write_u32(out, size as u32 + 1);
    } else {
        out.extend((size as i32).to_be_bytes());
    }
}

/// `number`, which is in the range of `kind`.
pub(super) fn write_integer(out: &mut Vec<u8>, kind: Kind, number: i64) {
    match kind {
        Kind::Int8 => out.push(number as u8),
        Kind::Int16 | Kind::Uint16 => out.extend((number as u16).to_be_bytes()),
        Kind::Int64 => out.extend(number.to_be_bytes()),
        _ => out.extend((number as u32).to_be_bytes()),
    }
}

/// Null, in a field that may be null.
pub(super) fn write_null(out: &mut Vec<u8>, encoding: &Encoding) {
    match encoding {
        Encoding::Text { compact: false } => out.extend((-1_i16).to_be_bytes()),
        Encoding::Struct(_) => out.push(0xff),
        Encoding::Text { compact }
        | Encoding::Bytes { compact }
        | Encoding::Records { compact }
        | Encoding::Array { compact, .. } => {
            if *compact {
                out.push(0);
            } else {
                out.extend((-1_i32).to_be_bytes());
            }
        }
        _ => unreachable!("the table allows null for no other kind"),
    }
}

/// Write the default in place of a missing value. The default was checked against its kind with the table.
pub(super) fn write_default(out: &mut Vec<u8>, encoding: &Encoding, nullable: bool, initial: &Initial) {
    match (encoding, initial) {
        (_, Initial::Null) => write_null(out, encoding),
        (Encoding::Bool, initial) => out.push(u8::from(*initial == Initial::Bool(true))),
        (Encoding::Integer(kind, ..), Initial::Int(number)) => write_integer(out, *kind, *number),
        (Encoding::Integer(kind, ..), _) => write_integer(out, *kind, 0),
        (Encoding::Float64, Initial::Float(number)) => out.extend(number.to_be_bytes()),
        (Encoding::Float64, _) => out.extend(0_f64.to_be_bytes()),
        (Encoding::Uuid, Initial::Bytes(bytes)) => out.extend(bytes),
        (Encoding::Uuid, _) => out.extend([0; 16]),
        (Encoding::Text { compact }, initial) => {
            let text = if let Initial::Text(text) = initial { text.as_str() } else { "" };
            write_text_length(out, *compact, text.len());
            out.extend(text.as_bytes());
        }
        (Encoding::Bytes { compact }, initial) => {
            let bytes = if let Initial::Bytes(bytes) = initial { bytes.as_slice() } else { &[] };
            write_length(out, *compact, bytes.len());
            out.extend(bytes);
        }
        (Encoding::Records { compact } | Encoding::Array { compact, .. }, _) => {
            write_length(out, *compact, 0);
        }
        (Encoding::Tags, _) => out.push(0),
        (Encoding::Struct(plan), _) => {
            if nullable {
                out.push(1);
            }
            for step in &plan.steps {
                out.extend(&step.written);
            }
            if plan.flexible {
                out.push(0);
            }
        }
    }
}
