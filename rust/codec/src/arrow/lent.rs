//! Arrow arrays that somebody lends, read in place. They may begin anywhere in their buffers.

use std::borrow::Cow;
use std::ops::Range;

use crate::{Code, Error, Result};

/// An array, from its first cell on.
#[derive(Debug, Clone)]
pub struct Array<'a> {
    /// How many cells.
    pub length: usize,
    /// The validity bitmap; None if no cell is null.
    pub valid: Option<Bitmap<'a>>,
    /// The bytes of the cells.
    pub cells: Cells<'a>,
}

/// An array's buffers. What Spark does not send for a record is `Other`, with its format in Arrow's C data interface.
#[derive(Debug, Clone)]
pub enum Cells<'a> {
    /// Byte strings: what cuts them, and their bytes.
    Binary(Offsets<'a>, &'a [u8]),
    /// Text, likewise.
    Text(Offsets<'a>, &'a [u8]),
    /// 32-bit numbers.
    Ints(&'a [[u8; 4]]),
    /// Lists: what cuts them, and their elements.
    Lists(Offsets<'a>, Box<Array<'a>>),
    /// Several arrays by name.
    Struct(Vec<(&'a str, Array<'a>)>),
    /// Anything else.
    Other(&'a str),
}

/// Where each cell begins, and where the last one ends; empty if there are no cells.
#[derive(Debug, Clone, Copy)]
pub enum Offsets<'a> {
    /// 32 bits each.
    Short(&'a [[u8; 4]]),
    /// 64 bits each.
    Long(&'a [[u8; 8]]),
}

/// A bit for each cell, lowest first, beginning with that of number `from`; 0 for null.
#[derive(Debug, Clone, Copy)]
pub struct Bitmap<'a> {
    /// The bytes that hold them.
    pub bytes: &'a [u8],
    /// The first cell's bit.
    pub from: usize,
}

impl<'a> Array<'a> {
    #[inline]
    pub(super) fn is_null(&self, at: usize) -> bool {
        self.valid.is_some_and(|Bitmap { bytes, from }| bytes[(from + at) / 8] >> ((from + at) % 8) & 1 == 0)
    }

    /// The type as Arrow calls it.
    pub(super) fn kind(&self) -> Cow<'a, str> {
        let Cells::Other(format) = self.cells else {
            return match self.cells {
                Cells::Binary(..) => "binary",
                Cells::Text(..) => "string",
                Cells::Ints(_) => "int32",
                Cells::Lists(..) => "list",
                _ => "struct",
            }
            .into();
        };
        let known = [
            ("n", "null"),
            ("b", "bool"),
            ("c", "int8"),
            ("s", "int16"),
            ("l", "int64"),
            ("f", "float"),
            ("g", "double"),
            ("d:", "decimal"),
            ("td", "date"),
            ("ts", "timestamp"),
            ("vu", "string_view"),
            ("vz", "binary_view"),
            ("+m", "map"),
        ];
        match known.iter().find(|(start, _)| format.starts_with(start)) {
            Some((_, name)) => (*name).into(),
            None => format!("of Arrow's format {format:?}").into(),
        }
    }

    /// Each cell's bytes, None for null. `BAD_COLUMNS` for an array that is not of binary.
    pub fn binary(&self, name: &str) -> Result<Vec<Option<&'a [u8]>>> {
        match (&self.cells, self.strings(name)?) {
            (Cells::Binary(..), Some(strings)) => Ok((0..self.length).map(|at| strings.get(at)).collect()),
            _ => Error::fail(
                Code::BadColumns,
                format!("the column {name} is {}, and has to be binary", self.kind()),
            ),
        }
    }

    /// These as byte strings, which are null or inside the data. `BAD_COLUMNS`.
    pub(super) fn strings(&self, name: &str) -> Result<Option<Strings<'a>>> {
        let (Cells::Binary(offsets, data) | Cells::Text(offsets, data)) = &self.cells else {
            return Ok(None);
        };
        offsets.check(name, self.length, data.len())?;
        Ok(Some(Strings { offsets: *offsets, data, array: self.clone() }))
    }
}

/// A column of byte strings whose offsets were checked.
#[derive(Debug, Clone)]
pub(super) struct Strings<'a> {
    offsets: Offsets<'a>,
    data: &'a [u8],
    array: Array<'a>,
}

impl<'a> Strings<'a> {
    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&'a [u8]> {
        if self.array.is_null(at) { None } else { Some(&self.data[self.offsets.range(at)]) }
    }

    /// Bytes of all cells.
    pub(super) fn size(&self) -> usize {
        match self.array.length {
            0 => 0,
            cells => self.offsets.range(cells - 1).end - self.offsets.range(0).start,
        }
    }
}

impl Offsets<'_> {
    /// Where one cell lies; `check` was passed.
    #[inline]
    pub(super) fn range(&self, at: usize) -> Range<usize> {
        match self {
            Self::Short(ends) => {
                i32::from_ne_bytes(ends[at]) as usize..i32::from_ne_bytes(ends[at + 1]) as usize
            }
            Self::Long(ends) => {
                i64::from_ne_bytes(ends[at]) as usize..i64::from_ne_bytes(ends[at + 1]) as usize
            }
        }
    }

    /// They cut `cells` cells, do not fall, and stay within `end`. `BAD_COLUMNS`.
    pub(super) fn check(&self, name: &str, cells: usize, end: usize) -> Result<()> {
        let good = cells == 0
            || match self {
                Self::Short(ends) => rise(ends, cells, end, |end| i32::from_ne_bytes(end).into()),
                Self::Long(ends) => rise(ends, cells, end, i64::from_ne_bytes),
            };
        if good {
            Ok(())
        } else {
            Error::fail(Code::BadColumns, format!("the offsets of the column {name} are wrong"))
        }
    }
}

fn rise<T: Copy>(ends: &[T], cells: usize, end: usize, read: impl Fn(T) -> i64) -> bool {
    let falls = ends.windows(2).fold(false, |falls, pair| falls | (read(pair[0]) > read(pair[1])));
    let bounds = ends.first().zip(ends.last());
    let inside = bounds.is_some_and(|(from, to)| read(*from) >= 0 && read(*to) as usize <= end);
    ends.len() == cells + 1 && !falls && inside
}
