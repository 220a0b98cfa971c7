//! A stretch of a file, mapped: what lies in the page cache is handed on without a copy.

use std::ffi::{c_int, c_void};
use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::error::bad_value;

/// Bytes, from a multiple of them on, that the kernel puts into the page table when one of their pages is missing there.
const FAULT_AROUND: usize = 64 << 10;

/// A stretch of a file, mapped for reading; it may reach beyond the file's end, for what is yet to be written.
///
/// The stretch is unmapped when its last view has gone; the file may be closed, renamed and removed before.
#[pyclass(frozen, module = "korvet_fast._native")]
pub(crate) struct FileMapping {
    start: NonNull<c_void>,
    size: usize,
    entered: AtomicUsize, // the end of what was entered into the page table last
}

// SAFETY: the memory is read-only and stays where it is until `drop`.
unsafe impl Send for FileMapping {}
// SAFETY: as above.
unsafe impl Sync for FileMapping {}

#[pymethods]
impl FileMapping {
    /// `size` bytes from `position` on, a multiple of the page size, of the open file `fd`.
    ///
    /// Raises `MemoryError` if the process may not map as much, `OSError` for what else the kernel says.
    #[new]
    fn new(fd: c_int, position: libc::off_t, size: usize) -> PyResult<Self> {
        // SAFETY: a mapping where the kernel likes it touches no memory of ours.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, fd, position) };
        match NonNull::new(start) {
            Some(start) if start.as_ptr() != libc::MAP_FAILED => {
                Ok(Self { start, size, entered: AtomicUsize::new(0) })
            }
            _ => Err(io::Error::last_os_error().into()),
        }
    }

    /// A view of bytes `start` to `end`, counted from the mapping's start; None if not all of them are in the page cache.
    ///
    /// Reading these bytes does not wait, unless memory becomes so short meanwhile that they are dropped. Bytes
    /// beyond the file's end are not there. `BAD_VALUE` for bytes outside of the mapping; raises `OSError`.
    fn cached(slf: Bound<'_, Self>, start: usize, end: usize) -> PyResult<Option<Bound<'_, PyMemoryView>>> {
        let this = slf.get();
        if start >= end || end > this.size {
            let message = format!("bytes {start} to {end} of a mapping of {}", this.size);
            return Err(bad_value(slf.py(), message));
        }
        if !this.is_resident(start..end)? {
            return Ok(None);
        }
        this.enter(start..end);
        let stretch = Stretch { place: start..end, mapping: slf.clone().unbind() };
        PyMemoryView::from(Bound::new(slf.py(), stretch)?.as_any()).map(Some)
    }
}

/// Bytes of a page.
fn page_size() -> usize {
    // SAFETY: asks, and changes nothing.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

impl FileMapping {
    fn is_resident(&self, place: Range<usize>) -> io::Result<bool> {
        let page = page_size();
        let first = place.start / page * page;
        let mut pages = vec![0_u8; (place.end - first).div_ceil(page)];
        // SAFETY: the range lies within the mapping, and there is a byte for each of its pages.
        let result = unsafe {
            libc::mincore(self.start.as_ptr().byte_add(first), place.end - first, pages.as_mut_ptr())
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(pages.iter().all(|page| page & 1 == 1))
    }

    /// Enter resident bytes into the page table, so that the kernel does not stop at each page that is missing there while
    /// it sends them: the receiver would sleep and be woken in between.
    fn enter(&self, place: Range<usize>) {
        let from = place.start.max(self.entered.load(Ordering::Relaxed));
        if from >= place.end {
            return;
        }
        let (page, address) = (page_size(), self.start.addr().get());
        let mut at = from / page * page;
        while at < place.end {
            // Pages that cannot be entered (before Linux 5.14, none can) are met again by the thread that sends them.
            // SAFETY: the page lies within the mapping, and is not changed.
            unsafe { libc::madvise(self.start.as_ptr().byte_add(at), page, libc::MADV_POPULATE_READ) };
            at += FAULT_AROUND - (address + at) % FAULT_AROUND;
        }
        self.entered.store(place.end, Ordering::Relaxed);
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no view is left: each holds the mapping.
        unsafe { libc::munmap(self.start.as_ptr(), self.size) };
    }
}

/// Bytes of a mapping that were in the page cache when they were asked for.
#[pyclass(frozen)]
struct Stretch {
    place: Range<usize>,
    mapping: Py<FileMapping>,
}

#[pymethods]
impl Stretch {
    /// A read-only view.
    ///
    /// # Safety
    /// `view` comes from the interpreter, which says that it may be filled in.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        // SAFETY: the bytes lie within the mapping, which `slf` holds and `view` holds `slf`.
        let filled = unsafe {
            let start = this.mapping.get().start.as_ptr().byte_add(this.place.start);
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, this.place.len() as ffi::Py_ssize_t, 1, flags)
        };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
