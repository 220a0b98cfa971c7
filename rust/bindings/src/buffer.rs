//! Bytes in from any Python buffer, numbers out as one.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::{ptr, slice};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyTypeError};
use pyo3::ffi;
use pyo3::inspect::PyStaticExpr;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyMemoryView};
use pyo3::{Borrowed, type_hint_identifier};

use crate::error::bad_value;

/// Work on more than this many bytes is done with the interpreter released.
pub(crate) const DETACH_ABOVE: usize = 16 * 1024;

/// Buffers from this size on are handed on, not copied. Below it a part of its own costs more than a copy.
pub(crate) const LEND_FROM: usize = 4096;

/// Any C-contiguous Python buffer, read as bytes. Held exported, so it is neither freed nor resized meanwhile.
pub(crate) struct Input(PyUntypedBuffer);

impl Input {
    /// The bytes. The caller's promise to us: nobody writes into a buffer that they have handed in.
    pub(crate) fn as_slice(&self) -> &[u8] {
        if self.0.len_bytes() == 0 {
            return &[];
        }
        // SAFETY: the export is C-contiguous (checked in `extract`) and lasts as long as `self`.
        unsafe { slice::from_raw_parts(self.0.buf_ptr().cast::<u8>(), self.0.len_bytes()) }
    }

    /// The bytes, to be written to. `BAD_VALUE` for a buffer that is read-only. The caller's promise as in `as_slice`.
    pub(crate) fn as_mut_slice(&mut self, py: Python<'_>) -> PyResult<&mut [u8]> {
        if self.0.readonly() {
            return Err(bad_value(py, "the buffer is read-only".into()));
        }
        if self.0.len_bytes() == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as in `as_slice`; writable by the check above. Nobody else reads or writes it, by the caller's promise.
        Ok(unsafe { slice::from_raw_parts_mut(self.0.buf_ptr().cast::<u8>(), self.0.len_bytes()) })
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Input {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_identifier!("typing_extensions", "Buffer");

    fn extract(obj: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(&obj)?;
        if buffer.is_c_contiguous() {
            Ok(Self(buffer))
        } else {
            Err(PyTypeError::new_err("a C-contiguous buffer is needed"))
        }
    }
}

/// A bytearray of `size` bytes that hold whatever was in memory: for somebody who fills all of it before it is read.
///
/// `bytearray(size)` writes zeros first, which costs a quarter of what reading a page from the page cache does.
#[pyfunction]
pub(crate) fn reserve(py: Python<'_>, size: usize) -> PyResult<Bound<'_, PyByteArray>> {
    let size =
        ffi::Py_ssize_t::try_from(size).map_err(|_| PyMemoryError::new_err("no memory is that large"))?;
    // SAFETY: without a source the call leaves the content as it is, and gives a new bytearray, or null with an error.
    unsafe {
        let array = ffi::PyByteArray_FromStringAndSize(ptr::null(), size);
        Ok(Bound::from_owned_ptr_or_err(py, array)?.cast_into_unchecked())
    }
}

/// A buffer, and the object it belongs to.
pub(crate) struct Lent<'py> {
    object: Bound<'py, PyAny>,
    input: Input,
}

impl<'py> FromPyObject<'_, 'py> for Lent<'py> {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = Input::INPUT_TYPE;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self { input: object.extract()?, object: object.to_owned() })
    }
}

impl<'py> Lent<'py> {
    pub(crate) fn object(&self) -> &Bound<'py, PyAny> {
        &self.object
    }

    /// All of it as a view of bytes.
    pub(crate) fn view(&self) -> PyResult<Bound<'py, PyAny>> {
        let view = PyMemoryView::from(&self.object)?.into_any();
        let plain = view.getattr(intern!(view.py(), "format"))?.extract::<&str>()? == "B";
        if plain { Ok(view) } else { view.call_method1(intern!(view.py(), "cast"), ("B",)) }
    }

    pub(crate) fn into_object(self) -> Bound<'py, PyAny> {
        self.object
    }
}

impl AsRef<[u8]> for Lent<'_> {
    fn as_ref(&self) -> &[u8] {
        self.input.as_slice()
    }
}

/// A part of a view.
pub(crate) fn cut<'py>(view: &Bound<'py, PyAny>, place: Range<usize>) -> PyResult<Bound<'py, PyMemoryView>> {
    let (start, end) = (place.start as ffi::Py_ssize_t, place.end as ffi::Py_ssize_t);
    // `PySlice::new` of pyo3 0.30 never lets go of the three numbers that it makes.
    // SAFETY: `view` is an object that lives; a new reference comes back, or null with an exception set.
    let part = unsafe {
        Bound::from_owned_ptr_or_err(view.py(), ffi::PySequence_GetSlice(view.as_ptr(), start, end))
    };
    Ok(part?.cast_into()?)
}

const READ_ONLY: &str = "a column is read-only";

enum Elements {
    Longs(Vec<i64>),
    Ints(Vec<i32>),
    Bytes(Vec<u8>),
}

/// A buffer of numbers or bytes, readable by `NumPy` and Arrow without a copy (format `q`, `i` or `B`).
#[pyclass(frozen, module = "korvet_fast._native")]
pub(crate) struct Column {
    numbers: Elements,
    /// Lent to the views as their `shape` and `strides`, so it lives here.
    shape: [ffi::Py_ssize_t; 1],
    strides: [ffi::Py_ssize_t; 1],
}

impl Column {
    fn new(numbers: Elements) -> Self {
        let (length, width) = match &numbers {
            Elements::Longs(items) => (items.len(), 8),
            Elements::Ints(items) => (items.len(), 4),
            Elements::Bytes(items) => (items.len(), 1),
        };
        Self { numbers, shape: [length as ffi::Py_ssize_t], strides: [width] }
    }
}

impl From<Vec<i64>> for Column {
    fn from(items: Vec<i64>) -> Self {
        Self::new(Elements::Longs(items))
    }
}

impl From<Vec<i32>> for Column {
    fn from(items: Vec<i32>) -> Self {
        Self::new(Elements::Ints(items))
    }
}

impl From<Vec<u8>> for Column {
    fn from(items: Vec<u8>) -> Self {
        Self::new(Elements::Bytes(items))
    }
}

#[pymethods]
impl Column {
    /// How many numbers, or bytes.
    fn __len__(&self) -> usize {
        self.shape[0] as usize
    }

    /// A read-only view, for those who ask by method (PEP 688).
    #[pyo3(signature = (flags, /))]
    fn __buffer__(slf: Bound<'_, Self>, flags: c_int) -> PyResult<Bound<'_, PyMemoryView>> {
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err(READ_ONLY));
        }
        PyMemoryView::from(slf.as_any())
    }

    /// A read-only view, for `memoryview`, `numpy.frombuffer` and `pyarrow.py_buffer`.
    ///
    /// # Safety
    /// `view` comes from the interpreter, which says that it may be filled in.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            // SAFETY: the protocol asks for `obj` to be null on failure.
            unsafe { (*view).obj = ptr::null_mut() };
            return Err(PyBufferError::new_err(READ_ONLY));
        }
        let this = slf.get();
        let (data, format): (*const c_void, &CStr) = match &this.numbers {
            Elements::Longs(items) => (items.as_ptr().cast(), c"q"),
            Elements::Ints(items) => (items.as_ptr().cast(), c"i"),
            Elements::Bytes(items) => (items.as_ptr().cast(), c"B"),
        };
        let asked = |bit: c_int| flags & bit == bit;
        // SAFETY: the pointers lead into `this`, which is frozen and kept alive by `obj` until the view is released.
        unsafe {
            (*view).buf = data.cast_mut();
            (*view).len = this.shape[0] * this.strides[0];
            (*view).readonly = 1;
            (*view).itemsize = this.strides[0];
            (*view).format =
                if asked(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { ptr::null_mut() };
            (*view).ndim = 1;
            (*view).shape =
                if asked(ffi::PyBUF_ND) { this.shape.as_ptr().cast_mut() } else { ptr::null_mut() };
            (*view).strides =
                if asked(ffi::PyBUF_STRIDES) { this.strides.as_ptr().cast_mut() } else { ptr::null_mut() };
            (*view).suboffsets = ptr::null_mut();
            (*view).internal = ptr::null_mut();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }
}
