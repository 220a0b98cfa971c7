//! Frames into bytearrays.

use korvet_codec::frames::Piece;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyMemoryView};

use crate::buffer::{Input, cut};
use crate::error::OrRaise;

/// Cuts a byte stream into frames: a signed 32-bit big-endian length, then that many bytes.
///
/// Keeps the unfinished remainder. Memory grows as bytes arrive, never from the announced length alone: at most
/// max(64 KiB, 2 x received) is reserved. One copy per frame, and of a large one only of what came first: the rest may be
/// read into its place (`rest`).
#[pyclass(module = "korvet_fast._native")]
pub(crate) struct Frames {
    frames: korvet_codec::frames::Frames,
    open: Option<Py<PyByteArray>>,
}

#[pymethods]
impl Frames {
    /// Frames of at most `limit` bytes each.
    #[new]
    fn new(limit: usize) -> Self {
        Self { frames: korvet_codec::frames::Frames::new(limit), open: None }
    }

    /// Largest legal length in bytes. May be changed at any time; holds from the next length prefix on.
    #[getter]
    fn get_limit(&self) -> usize {
        self.frames.limit
    }

    #[setter]
    fn set_limit(&mut self, limit: usize) {
        self.frames.limit = limit;
    }

    /// Bytes of the unfinished frame held now, length prefix included.
    #[getter]
    fn pending(&self) -> usize {
        self.frames.pending()
    }

    /// All frames that `data` completes, without their length prefix.
    ///
    /// `NEGATIVE_LENGTH`, `OVERSIZE` (length > limit): the object is then dead and raises the same again; frames that
    /// the same data completed before are lost with it.
    fn feed<'py>(&mut self, py: Python<'py>, data: Input) -> PyResult<Vec<Bound<'py, PyByteArray>>> {
        let mut rest = data.as_slice();
        let mut whole = Vec::new();
        while let Some(piece) = self.frames.next(&mut rest).or_raise(py)? {
            let frame = match self.open.take() {
                Some(frame) => extend(frame.into_bound(py), &piece)?,
                None if piece.last => PyByteArray::new(py, piece.bytes),
                None => extend(PyByteArray::new(py, &[]), &piece)?,
            };
            if piece.last {
                whole.push(frame);
            } else {
                self.open = Some(frame.unbind());
            }
        }
        Ok(whole)
    }

    /// Where to put the bytes that come next, 64 KiB or more of the unfinished frame; None where `feed` is to have them.
    ///
    /// What was put there is told by `advance`, before anything else is asked; the view must be gone before the next `rest`.
    fn rest<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        let Some(frame) = &self.open else { return Ok(None) };
        let Some(place) = self.frames.rest() else { return Ok(None) };
        let frame = frame.bind(py);
        if frame.len() < place.end {
            frame.resize(place.end)?;
        }
        cut(PyMemoryView::from(frame)?.as_any(), place).map(Some)
    }

    /// So many bytes were put into what `rest` gave: the frame, if it is whole now. `BAD_VALUE` for more than fit.
    fn advance<'py>(&mut self, py: Python<'py>, count: usize) -> PyResult<Option<Bound<'py, PyByteArray>>> {
        let whole = self.frames.advance(count).or_raise(py)?;
        Ok(if whole { self.open.take().map(|frame| frame.into_bound(py)) } else { None })
    }
}

/// `frame` with `piece` in it. Nobody else has seen the frame yet.
fn extend<'py>(frame: Bound<'py, PyByteArray>, piece: &Piece<'_>) -> PyResult<Bound<'py, PyByteArray>> {
    if frame.len() < piece.room {
        frame.resize(piece.room)?;
    }
    // SAFETY: no Python code has a reference to `frame` yet, and none runs during the copy.
    let bytes = unsafe { frame.as_bytes_mut() };
    bytes[piece.at..piece.at + piece.bytes.len()].copy_from_slice(piece.bytes);
    Ok(frame)
}
