//! What `send` of a producer does for each message: it joins a run, and gets a place there.

use std::time::{SystemTime, UNIX_EPOCH};

use korvet_codec::batch::Origin;
use korvet_codec::columns::RECORD_MOST;
use pyo3::exceptions::PyIndexError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple, PyType};

use crate::batch::read_kind;
use crate::buffer::{Column, Input};
use crate::error::OrRaise;
use crate::hint::AnyList;
use crate::rows::{Built, build_lists};

/// Values, keys, headers and times of a run of messages, in the lists given, while more may join.
///
/// `room`: bytes of memory that are left for them; `most`: messages there may be.
#[pyclass(module = "korvet_fast._native")]
pub(crate) struct MessageCells {
    values: Py<PyList>,
    keys: Py<PyList>,
    headers: Py<PyList>,
    times: Vec<i64>,
    #[pyo3(get, set)]
    room: i64,
    #[pyo3(get, set)]
    most: usize,
}

#[pymethods]
impl MessageCells {
    /// `times`: q[n], in ms, one for each value that is there.
    #[new]
    fn new(py: Python<'_>, values: AnyList, keys: AnyList, headers: AnyList, times: Input) -> Self {
        let (items, _) = times.as_slice().as_chunks();
        let times = items.iter().map(|item| i64::from_ne_bytes(*item)).collect();
        for cells in [values.0.bind(py), keys.0.bind(py)] {
            if cells.iter().all(|cell| cell_bytes(&cell).is_some()) {
                untrack(cells); // bytes refer to nothing, and `add` takes nothing else
            }
        }
        Self { values: values.0, keys: keys.0, headers: headers.0, times, room: 0, most: 1 }
    }

    /// Take one more message; its index, or -1 without room for it, and for a value or key that is neither bytes nor None.
    ///
    /// `header_bytes`: what its headers take in a batch. `timestamp`: in ms; None: the present.
    #[pyo3(signature = (value, key, headers, header_bytes = 0, timestamp = None))]
    fn add(
        &mut self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
        header_bytes: i64,
        timestamp: Option<i64>,
    ) -> PyResult<isize> {
        let (Some(value_bytes), Some(key_bytes)) = (cell_bytes(value), cell_bytes(key)) else {
            return Ok(-1);
        };
        let room = self.room - (RECORD_MOST + value_bytes + key_bytes) as i64 - header_bytes;
        let index = self.times.len();
        if room < 0 || index >= self.most {
            return Ok(-1);
        }
        self.values.bind(py).append(value)?;
        self.keys.bind(py).append(key)?;
        self.headers.bind(py).append(headers)?;
        self.times.push(timestamp.unwrap_or_else(present));
        self.room = room;
        Ok(index as isize)
    }

    /// As `add`, for a message without headers that is sent now: `place(run, index)`, or None where `add` gives -1.
    ///
    /// The garbage collector does not look at the places: of thousands in a list it would find each time that they refer
    /// to their run. So a run must not refer to one of its places for longer than somebody waits there.
    fn join<'py>(
        &mut self,
        place: &Bound<'py, PyType>,
        run: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = run.py();
        let index = self.add(py, value, key, &PyTuple::empty(py), 0, None)?;
        if index < 0 {
            return Ok(None);
        }
        let place = place.call1((run, index))?;
        untrack(&place);
        Ok(Some(place))
    }

    /// The time of the message at a place, in ms.
    fn time(&self, place: usize) -> PyResult<i64> {
        self.times.get(place).copied().ok_or_else(|| PyIndexError::new_err("no message is there"))
    }

    /// All times, q[n].
    fn times(&self) -> Column {
        self.times.clone().into()
    }

    /// The messages as one version 2 batch: as `RowRun.build`, each with its time. None: some of them have headers.
    ///
    /// Raises as `build_rows`.
    fn build<'py>(
        &self,
        py: Python<'py>,
        compression: u8,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
    ) -> PyResult<Option<Built<'py>>> {
        for headers in self.headers.bind(py) {
            if headers.len()? > 0 {
                return Ok(None);
            }
        }
        let (compression, transactional) = read_kind(compression).or_raise(py)?;
        let origin = Origin { producer_id, producer_epoch, base_sequence, transactional };
        build_lists(py, self.values.bind(py), self.keys.bind(py), &self.times, compression, origin).map(Some)
    }

    /// All messages have this time.
    fn set_times(&mut self, timestamp: i64) {
        self.times.fill(timestamp);
    }

    /// The message at a place was taken out of the lists: its time goes too.
    fn forget_time(&mut self, place: usize) -> PyResult<()> {
        self.time(place)?;
        self.times.remove(place);
        Ok(())
    }
}

/// The garbage collector does not look at the object any more, which is of a class with garbage collection.
fn untrack<T>(object: &Bound<'_, T>) {
    // SAFETY: the object lives, and any object of such a class may be taken off the collector's list, more than once: its
    // deallocation does the same.
    unsafe { ffi::PyObject_GC_UnTrack(object.as_ptr().cast()) };
}

/// Bytes of a key or value, 0 for None; nothing for what is neither.
fn cell_bytes(cell: &Bound<'_, PyAny>) -> Option<usize> {
    match cell.cast_exact::<PyBytes>() {
        Ok(bytes) => Some(bytes.as_bytes().len()),
        Err(_) => cell.is_none().then_some(0),
    }
}

/// ms since 1970.
fn present() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
