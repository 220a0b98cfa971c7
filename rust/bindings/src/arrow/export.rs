//! Pages out of here through Arrow's C data interface, without a copy.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;

use korvet_codec::arrow::{Cells, Column, Name, Nulls, RecordColumns};

use super::abi::{ArrowArray, ArrowSchema, NULLABLE};

/// The type of the records: a struct with a field for each column.
pub(super) fn schema(records: &RecordColumns) -> ArrowSchema {
    let fields = records.columns.iter().map(|(name, column)| match column {
        Column::Binary(_) => field(title(*name), c"z", vec![]),
        Column::Text(_) => field(title(*name), c"u", vec![]),
        Column::Ints(_) => field(title(*name), c"i", vec![]),
        Column::Longs(_) => field(title(*name), c"l", vec![]),
        Column::Times(_) => field(title(*name), c"tsu:UTC", vec![]),
        Column::Headers(_) => {
            let pair = vec![field(c"key", c"u", vec![]), field(c"value", c"z", vec![])];
            field(title(*name), c"+l", vec![field(c"element", c"+s", pair)])
        }
    });
    field(c"", c"+s", fields.collect())
}

/// The records as a struct array, which keeps them alive.
pub(super) fn array(records: &Arc<RecordColumns>) -> ArrowArray {
    let columns = records.columns.iter().map(|(_, column)| match column {
        Column::Binary(cells) | Column::Text(cells) => bytes(records, cells),
        Column::Ints(numbers) => lend(records, numbers.len(), 0, vec![ptr::null(), start(numbers)], vec![]),
        Column::Longs(numbers) | Column::Times(numbers) => {
            lend(records, numbers.len(), 0, vec![ptr::null(), start(numbers)], vec![])
        }
        Column::Headers(headers) => {
            let pair = vec![bytes(records, &headers.keys), bytes(records, &headers.values)];
            let element = lend(records, headers.keys.len(), 0, vec![ptr::null()], pair);
            let buffers = vec![bitmap(&headers.nulls), start(&headers.offsets)];
            lend(records, headers.offsets.len() - 1, headers.nulls.count(), buffers, vec![element])
        }
    });
    lend(records, records.rows, 0, vec![ptr::null()], columns.collect())
}

fn bytes(records: &Arc<RecordColumns>, cells: &Cells) -> ArrowArray {
    let buffers = vec![bitmap(&cells.nulls), start(&cells.offsets), start(&cells.data)];
    lend(records, cells.len(), cells.nulls.count(), buffers, vec![])
}

fn bitmap(nulls: &Nulls) -> *const c_void {
    nulls.bitmap().map_or(ptr::null(), start)
}

fn start<T>(buffer: &[T]) -> *const c_void {
    buffer.as_ptr().cast()
}

fn title(name: Name) -> &'static CStr {
    match name {
        Name::Key => c"key",
        Name::Value => c"value",
        Name::Topic => c"topic",
        Name::Partition => c"partition",
        Name::Offset => c"offset",
        Name::Timestamp => c"timestamp",
        Name::TimestampType => c"timestampType",
        Name::Headers => c"headers",
    }
}

/// The memory that a lent struct needs until it is released.
struct Held<T> {
    /// The owner of the buffers; None for a type, whose texts are static.
    _records: Option<Arc<RecordColumns>>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut T>,
}

impl<T> Held<T> {
    fn new(records: Option<Arc<RecordColumns>>, buffers: Vec<*const c_void>, children: Vec<T>) -> Self {
        let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
        Self { _records: records, buffers, children }
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        for child in self.children.drain(..) {
            // SAFETY: made by `Box::into_raw` in `new`. If its content was moved away, its callback is null, and
            // dropping it frees no more than the struct.
            drop(unsafe { Box::from_raw(child) });
        }
    }
}

fn field(name: &'static CStr, format: &'static CStr, children: Vec<ArrowSchema>) -> ArrowSchema {
    let mut held = Held::new(None, vec![], children);
    ArrowSchema {
        format: format.as_ptr(),
        name: name.as_ptr(),
        metadata: ptr::null(),
        flags: NULLABLE,
        n_children: held.children.len() as i64,
        children: held.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_schema),
        private_data: Box::into_raw(Box::new(held)).cast(),
    }
}

/// `buffers` lead into `records`.
fn lend(
    records: &Arc<RecordColumns>,
    length: usize,
    nulls: usize,
    buffers: Vec<*const c_void>,
    children: Vec<ArrowArray>,
) -> ArrowArray {
    let mut held = Held::new(Some(Arc::clone(records)), buffers, children);
    ArrowArray {
        length: length as i64,
        null_count: nulls as i64,
        offset: 0,
        n_buffers: held.buffers.len() as i64,
        n_children: held.children.len() as i64,
        buffers: held.buffers.as_mut_ptr(),
        children: held.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(Box::new(held)).cast(),
    }
}

/// # Safety
/// `schema` was made by `field`, and was not released yet.
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: so `private_data` is what `field` put there, and this is its only release.
    unsafe {
        drop(Box::from_raw((*schema).private_data.cast::<Held<ArrowSchema>>()));
        (*schema).release = None;
    }
}

/// # Safety
/// `array` was made by `lend`, and was not released yet.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: so `private_data` is what `lend` put there, and this is its only release.
    unsafe {
        drop(Box::from_raw((*array).private_data.cast::<Held<ArrowArray>>()));
        (*array).release = None;
    }
}
