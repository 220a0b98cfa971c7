//! Frames into bytearrays.

use korvet_codec::frames::FramePart;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList, PyMemoryView};

use crate::buffer::{Input, cut};
use crate::error::OrRaise;

/// Cuts a byte stream into frames: a signed 32-bit big-endian length, then that many bytes.
///
/// Keeps the unfinished remainder. Memory grows as bytes arrive, never from the announced length alone: at most
/// max(64 KiB, 2 x received) is reserved. One copy per frame, and of a large one only of what came first: the rest may be
/// read into its place (`rest`).
#[pyclass(module = "korvet_fast._native")]
pub(crate) struct Frames {
    cutter: korvet_codec::frames::Frames,
    open: Option<Py<PyByteArray>>,
    later: Vec<u8>, // the bytes behind the frames asked for
    used: usize,    // how much of it was cut into frames since
}

#[pymethods]
impl Frames {
    /// Frames of at most `limit` bytes each.
    #[new]
    fn new(limit: usize) -> Self {
        Self { cutter: korvet_codec::frames::Frames::new(limit), open: None, later: Vec::new(), used: 0 }
    }

    /// Largest legal length in bytes. May be changed at any time; holds from the next length prefix on.
    #[getter]
    fn get_limit(&self) -> usize {
        self.cutter.limit
    }

    #[setter]
    fn set_limit(&mut self, limit: usize) {
        self.cutter.limit = limit;
    }

    /// Bytes held now, length prefixes included: of the unfinished frame, and of frames beyond `most`.
    #[getter]
    fn pending(&self) -> usize {
        self.cutter.pending() + self.later.len() - self.used
    }

    /// Length of the unfinished frame as its prefix announced it; 0 while that is not known.
    #[getter]
    fn announced(&self) -> usize {
        self.cutter.announced()
    }

    /// The frames that `data` completes, without their length prefix: the first `most` of them, if that is given.
    ///
    /// Bytes behind these frames are kept, and cut when `feed` is called again; `data` may be empty then.
    /// `NEGATIVE_LENGTH`, `OVERSIZE` (length > limit): the object is then dead and raises the same again; frames that
    /// the same data completed before are lost with it.
    #[pyo3(signature = (data, most = usize::MAX))]
    fn feed<'py>(&mut self, py: Python<'py>, data: Input, most: usize) -> PyResult<Bound<'py, PyList>> {
        let mut later = std::mem::take(&mut self.later);
        let held = !later.is_empty();
        if held {
            later.extend_from_slice(data.as_slice());
        }
        let mut rest = if held { &later[std::mem::take(&mut self.used)..] } else { data.as_slice() };
        let (mut first, mut more) = (None, Vec::new()); // mostly one frame arrives, which needs no vector
        while usize::from(first.is_some()) + more.len() < most
            && let Some(part) = self.cutter.next(&mut rest).or_raise(py)?
        {
            let frame = match self.open.take() {
                Some(frame) => extend(frame.into_bound(py), &part)?,
                None if part.last => PyByteArray::new(py, part.bytes),
                None => extend(PyByteArray::new(py, &[]), &part)?,
            };
            if !part.last {
                self.open = Some(frame.unbind());
            } else if first.is_none() {
                first = Some(frame);
            } else {
                more.push(frame);
            }
        }
        if !rest.is_empty() {
            if held {
                self.used = later.len() - rest.len();
                self.later = later;
            } else {
                self.later = rest.to_vec();
            }
        }
        if more.is_empty() {
            return PyList::new(py, first);
        }
        more.splice(..0, first);
        PyList::new(py, more)
    }

    /// Where to put the bytes that come next, 64 KiB or more of the unfinished frame; None where `feed` is to have them.
    ///
    /// `advance` tells how many bytes were put there, before any other call. The view must be gone before `rest` again.
    fn rest<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        let Some(frame) = &self.open else { return Ok(None) };
        let Some(place) = self.cutter.rest() else { return Ok(None) };
        let frame = frame.bind(py);
        if frame.len() < place.end {
            frame.resize(place.end)?;
        }
        cut(PyMemoryView::from(frame)?.as_any(), place).map(Some)
    }

    /// So many bytes were put into what `rest` gave: the frame, if it is whole now. `BAD_VALUE` for more than fit.
    fn advance<'py>(&mut self, py: Python<'py>, count: usize) -> PyResult<Option<Bound<'py, PyByteArray>>> {
        let whole = self.cutter.advance(count).or_raise(py)?;
        Ok(if whole { self.open.take().map(|frame| frame.into_bound(py)) } else { None })
    }
}

/// `frame` with `part` in it. Nobody else has seen the frame yet.
fn extend<'py>(frame: Bound<'py, PyByteArray>, part: &FramePart<'_>) -> PyResult<Bound<'py, PyByteArray>> {
    if frame.len() < part.room {
        frame.resize(part.room)?;
    }
    // SAFETY: no Python code has a reference to `frame` yet, and none runs during the copy.
    let bytes = unsafe { frame.as_bytes_mut() };
    bytes[part.at..part.at + part.bytes.len()].copy_from_slice(part.bytes);
    Ok(frame)
}
