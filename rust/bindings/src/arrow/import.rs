//! Somebody else's arrays through Arrow's C data interface, read in place.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;
use std::slice;

use korvet_codec::arrow::lent::{Array, Bitmap, Cells, Offsets};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::abi::{ARRAY, ArrowArray, ArrowSchema, SCHEMA};
use crate::error::bad_value;

/// An array and its type, ours until they are dropped.
pub(crate) struct Lent {
    schema: ArrowSchema,
    array: ArrowArray,
}

// SAFETY: nothing is written, and the interface lets buffers be read on any thread.
unsafe impl Sync for Lent {}

impl Lent {
    /// The array of an object with `__arrow_c_array__`. `TypeError` or `AttributeError` for another, `BAD_VALUE` if its
    /// capsules are used up.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) =
            object.call_method0("__arrow_c_array__")?.extract()?;
        let from = schema.pointer_checked(Some(SCHEMA))?.cast::<ArrowSchema>();
        let held = array.pointer_checked(Some(ARRAY))?.cast::<ArrowArray>();
        // SAFETY: capsules of these names hold these structs. Moving one out is to copy it and to clear the callback of
        // the original, all with the interpreter held.
        let lent = unsafe {
            let lent = Self { schema: from.read(), array: held.read() };
            (*from.as_ptr()).release = None;
            (*held.as_ptr()).release = None;
            lent
        };
        match (lent.schema.release, lent.array.release) {
            (Some(_), Some(_)) => Ok(lent),
            _ => Err(bad_value(object.py(), "the Arrow array was taken already".into())),
        }
    }

    /// It, to be read.
    pub(crate) fn array(&self) -> Array<'_> {
        // SAFETY: neither was released, and their producer promises that they belong together.
        unsafe { view(&self.schema, &self.array, 0, self.array.length as usize) }
    }
}

/// `length` cells of an array, from number `from` on.
///
/// # Safety
/// `schema` describes `array`, neither was released, and the array has that many cells.
unsafe fn view<'a>(schema: &'a ArrowSchema, array: &'a ArrowArray, from: usize, length: usize) -> Array<'a> {
    let from = array.offset as usize + from;
    // SAFETY: the interface lays down which buffers a format has and how long they are; children likewise. The array's
    // own offset counts for its buffers and for the fields of a struct, not for the elements of lists.
    unsafe {
        let buffers = items(array.buffers, array.n_buffers);
        let children =
            || items(schema.children, schema.n_children).iter().zip(items(array.children, array.n_children));
        let format = text(schema.format);
        let cells = match format {
            _ if !schema.dictionary.is_null() => Cells::Other("dictionary"),
            "z" | "u" | "Z" | "U" => {
                let (offsets, end) =
                    offsets(format.as_bytes()[0].is_ascii_uppercase(), buffers[1], from, length);
                let data = buffer(buffers[2], 0, end);
                if format.eq_ignore_ascii_case("z") {
                    Cells::Binary(offsets, data)
                } else {
                    Cells::Text(offsets, data)
                }
            }
            "i" => Cells::Ints(buffer(buffers[1], from, length)),
            "+l" | "+L" => match children().next() {
                Some((kind, elements)) => {
                    let elements = view(&**kind, &**elements, 0, (**elements).length as usize);
                    Cells::Lists(offsets(format == "+L", buffers[1], from, length).0, Box::new(elements))
                }
                None => Cells::Other(format),
            },
            "+s" => Cells::Struct(
                children()
                    .map(|(kind, field)| (text((**kind).name), view(&**kind, &**field, from, length)))
                    .collect(),
            ),
            other => Cells::Other(other),
        };
        let valid = buffers.first().filter(|bits| !bits.is_null() && array.null_count != 0);
        let valid = valid.map(|bits| Bitmap { bytes: buffer(*bits, 0, (from + length).div_ceil(8)), from });
        Array { length, valid, cells }
    }
}

/// The offsets of cells, and how far the last one leads.
///
/// # Safety
/// `start` is the buffer of offsets, of 64 bits if `long`, of an array that has these cells.
unsafe fn offsets<'a>(long: bool, start: *const c_void, from: usize, cells: usize) -> (Offsets<'a>, usize) {
    // An array without cells may go without offsets.
    let many = if cells == 0 { 0 } else { cells + 1 };
    // SAFETY: as above.
    unsafe {
        if long {
            let ends: &[[u8; 8]] = buffer(start, from, many);
            let end = ends.last().map_or(0, |end| i64::from_ne_bytes(*end));
            (Offsets::Long(ends), end.max(0) as usize)
        } else {
            let ends: &[[u8; 4]] = buffer(start, from, many);
            let end = ends.last().map_or(0, |end| i32::from_ne_bytes(*end));
            (Offsets::Short(ends), end.max(0) as usize)
        }
    }
}

/// A part of a buffer; of bytes or arrays of them, so that it may begin anywhere.
///
/// # Safety
/// The buffer is null or reaches that far, and outlives `'a`.
unsafe fn buffer<'a, T>(start: *const c_void, from: usize, many: usize) -> &'a [T] {
    const { assert!(align_of::<T>() == 1) };
    if start.is_null() || many == 0 {
        return &[];
    }
    // SAFETY: as above.
    unsafe { slice::from_raw_parts(start.cast::<T>().add(from), many) }
}

/// # Safety
/// `start` is null, or leads to that many that outlive `'a`.
unsafe fn items<'a, T>(start: *mut T, many: i64) -> &'a [T] {
    match NonNull::new(start) {
        // SAFETY: as above.
        Some(start) => unsafe { slice::from_raw_parts(start.as_ptr(), many as usize) },
        None => &[],
    }
}

/// A text of the interface, which demands UTF-8; one that is something else is no name of ours.
///
/// # Safety
/// `start` is null, or a text ended by zero that outlives `'a`.
unsafe fn text<'a>(start: *const c_char) -> &'a str {
    if start.is_null() {
        return "";
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(start) }.to_str().unwrap_or_default()
}
