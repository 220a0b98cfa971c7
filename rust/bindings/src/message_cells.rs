//! What `send` of a producer does for each message: it joins a run, and gets a place there.

use std::time::{SystemTime, UNIX_EPOCH};

use korvet_codec::batch::Origin;
use korvet_codec::columns::{self, RECORD_MOST};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::batch::{read_kind, run};
use crate::buffer::Column;
use crate::error::OrRaise;
use crate::rows::{Built, ColumnRows, SMALL, build_small, hand_over};

/// The headers of one message.
struct Headers {
    /// The message's place.
    place: usize,
    object: Py<PyAny>,
    /// What they take in a batch, at most.
    bytes: usize,
}

/// So many values ahead of the one that is encoded, the processor begins to read the next one: values of one partition,
/// which other partitions' lie between, take longer to come from memory than to encode.
const AHEAD: usize = 12;

/// Have the processor read the beginning of a value.
#[cfg(target_arch = "x86_64")]
fn fetch_ahead(value: &Py<PyBytes>) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    for line in 0..3 {
        // SAFETY: a hint, which reads nothing that the program could see, and may point anywhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(value.as_ptr().cast::<i8>().wrapping_add(64 * line)) };
    }
}

/// Elsewhere it finds out by itself.
#[cfg(not(target_arch = "x86_64"))]
fn fetch_ahead(_: &Py<PyBytes>) {}

type Cell = Option<Py<PyBytes>>;

/// Keys, values, headers and times of a run of messages, while more may join.
///
/// `room`: bytes of memory that are left for them; `most`: messages there may be.
#[pyclass(module = "korvet_fast._native")]
pub(crate) struct MessageCells {
    values: Vec<Cell>,
    /// Empty while no message has one.
    keys: Vec<Cell>,
    /// Of those that have some, in order.
    headers: Vec<Headers>,
    times: Vec<i64>,
    /// Bytes of their records in a batch, at most.
    #[pyo3(get)]
    size: usize,
    #[pyo3(get, set)]
    room: i64,
    #[pyo3(get, set)]
    most: usize,
}

#[pymethods]
impl MessageCells {
    /// A run of one message, without room for others. `header_bytes`, `timestamp`: as in `add`.
    ///
    /// Raises `TypeError` for a value or key that is neither bytes nor None.
    #[new]
    #[pyo3(signature = (value, key, headers, header_bytes, timestamp))]
    fn new(
        value: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
        header_bytes: usize,
        timestamp: Option<i64>,
    ) -> PyResult<Self> {
        let (value, key, headers) = (cell(value)?, cell(key)?, some(headers, header_bytes)?);
        let bytes = record_bytes(value, key, headers.as_ref());
        let mut run = Self::empty();
        run.append(value, key, headers, bytes, timestamp.unwrap_or_else(present));
        Ok(run)
    }

    /// How many messages.
    fn __len__(&self) -> usize {
        self.times.len()
    }

    /// Take one more message; its index, or -1 without room for it, and for a value or key that is neither bytes nor None.
    ///
    /// `header_bytes`: what its headers take in a batch. `timestamp`: in ms; None: the present.
    #[pyo3(signature = (value, key, headers, header_bytes = 0, timestamp = None))]
    fn add(
        &mut self,
        value: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
        header_bytes: usize,
        timestamp: Option<i64>,
    ) -> PyResult<isize> {
        let headers = some(headers, header_bytes)?;
        Ok(self.join_one(value, key, headers, timestamp).map_or(-1, |index| index as isize))
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
        let Some(index) = self.join_one(value, key, None, None) else {
            return Ok(None);
        };
        new_place(place, run, index).map(Some)
    }

    /// `place(run, index)` for a message that is there, as `join` makes it.
    #[staticmethod]
    fn place<'py>(
        place: &Bound<'py, PyType>,
        run: &Bound<'py, PyAny>,
        index: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        new_place(place, run, index)
    }

    /// There is memory for `room` bytes more, and for `most` messages in all.
    fn grant(slf: &Bound<'_, Self>, room: i64, most: usize) {
        untrack(slf); // it finds nothing in here, and would look at thousands of runs with many messages each
        let mut run = slf.borrow_mut();
        run.room += room;
        run.most = most;
        let least = RECORD_MOST as i64; // bytes of a message: so there is no memory for more of them
        let more = most.saturating_sub(run.times.len()).min((run.room / least).max(0) as usize);
        run.values.reserve(more);
        if !run.keys.is_empty() {
            run.keys.reserve(more);
        }
        run.times.reserve(more);
    }

    /// The value of each message.
    fn values(&self) -> Vec<Option<&Py<PyBytes>>> {
        self.values.iter().map(Option::as_ref).collect()
    }

    /// The key of each message.
    fn keys(&self) -> Vec<Option<&Py<PyBytes>>> {
        (0..self.values.len()).map(|place| self.key_at(place)).collect()
    }

    /// The headers of each message, () for none.
    fn headers<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        let mut all = vec![PyTuple::empty(py).into_any(); self.values.len()];
        for headers in &self.headers {
            all[headers.place] = headers.object.bind(py).clone();
        }
        all
    }

    /// The key of the message at a place.
    fn key(&self, place: usize) -> PyResult<Option<&Py<PyBytes>>> {
        self.check(place)?;
        Ok(self.key_at(place))
    }

    /// The time of the message at a place, in ms.
    fn time(&self, place: usize) -> PyResult<i64> {
        self.times.get(place).copied().ok_or_else(no_message)
    }

    /// All times, q[n].
    fn times(&self) -> Column {
        self.times.clone().into()
    }

    /// Keys and values.
    fn columns(&self, py: Python<'_>) -> ColumnRows {
        let keys = (0..self.values.len()).map(|place| copy(py, self.key_at(place)));
        ColumnRows::of_cells(py, keys, self.values.iter().map(|value| copy(py, value.as_ref())))
    }

    /// The messages at these places as a run of their own, without room for others.
    fn part(&self, py: Python<'_>, places: Vec<usize>) -> PyResult<Self> {
        let mut own = Self::empty();
        own.values.reserve(places.len());
        own.times.reserve(places.len());
        for place in places {
            self.check(place)?;
            let headers = self.headers_at(place).map(|found| (found.object.clone_ref(py), found.bytes));
            let (value, key) = (self.values[place].as_ref(), self.key_at(place));
            let (value, key) = (value.map(|value| value.bind(py)), key.map(|key| key.bind(py)));
            let bytes = record_bytes(value, key, headers.as_ref());
            own.append(value, key, headers, bytes, self.times[place]);
        }
        Ok(own)
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
        if !self.headers.is_empty() {
            return Ok(None);
        }
        let (compression, transactional) = read_kind(compression).or_raise(py)?;
        let origin = Origin { producer_id, producer_epoch, base_sequence, transactional };
        let row = |place: usize| {
            if let Some(Some(ahead)) = self.values.get(place + AHEAD) {
                fetch_ahead(ahead);
            }
            (self.times[place], bytes(py, self.key_at(place)), bytes(py, self.values[place].as_ref()))
        };
        let rows = (0..self.values.len()).map(row);
        if self.size <= SMALL {
            let work = |out| columns::build_rows(rows, out, self.size, compression, origin);
            return build_small(py, work).map(Some);
        }
        let rows: Vec<_> = rows.collect();
        let work = || columns::build_rows(rows.into_iter(), Vec::new(), self.size, compression, origin);
        hand_over(py, run(py, self.size, work).or_raise(py)?).map(Some)
    }

    /// All messages have this time.
    fn set_times(&mut self, timestamp: i64) {
        self.times.fill(timestamp);
    }

    /// The message at a place leaves the run.
    fn remove(&mut self, py: Python<'_>, place: usize) -> PyResult<()> {
        self.check(place)?;
        let headers = self.headers_at(place).map_or(0, |headers| headers.bytes);
        self.size -=
            RECORD_MOST + length(py, self.key_at(place)) + length(py, self.values[place].as_ref()) + headers;
        self.values.remove(place);
        self.times.remove(place);
        if !self.keys.is_empty() {
            self.keys.remove(place);
        }
        self.headers.retain(|headers| headers.place != place);
        for headers in self.headers.iter_mut().filter(|headers| headers.place > place) {
            headers.place -= 1;
        }
        Ok(())
    }

    /// Drop keys, values and headers; the times stay. Nothing but these may be asked for any more.
    fn forget(&mut self) {
        (self.values, self.keys, self.headers) = (Vec::new(), Vec::new(), Vec::new());
    }
}

impl MessageCells {
    fn empty() -> Self {
        Self {
            values: Vec::new(),
            keys: Vec::new(),
            headers: Vec::new(),
            times: Vec::new(),
            size: 0,
            room: 0,
            most: 0,
        }
    }

    fn check(&self, place: usize) -> PyResult<()> {
        if place < self.values.len() { Ok(()) } else { Err(no_message()) }
    }

    fn key_at(&self, place: usize) -> Option<&Py<PyBytes>> {
        self.keys.get(place)?.as_ref()
    }

    fn headers_at(&self, place: usize) -> Option<&Headers> {
        let at = self.headers.binary_search_by_key(&place, |headers| headers.place).ok()?;
        Some(&self.headers[at])
    }

    /// Add a message if there is room for it: its place.
    #[inline]
    fn join_one(
        &mut self,
        value: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        headers: Option<(Py<PyAny>, usize)>,
        timestamp: Option<i64>,
    ) -> Option<usize> {
        let (value, key) = (exact(value).ok()?, exact(key).ok()?);
        let bytes = record_bytes(value, key, headers.as_ref());
        let room = self.room - bytes as i64;
        let place = self.times.len();
        if room < 0 || place >= self.most {
            return None;
        }
        let most = self.most;
        self.append(value, key, headers, bytes, timestamp.unwrap_or_else(present));
        (self.room, self.most) = (room, most);
        Some(place)
    }

    /// Add a message of so many `bytes`, for which there need be no room.
    #[inline]
    fn append(
        &mut self,
        value: Option<&Bound<'_, PyBytes>>,
        key: Option<&Bound<'_, PyBytes>>,
        headers: Option<(Py<PyAny>, usize)>,
        bytes: usize,
        timestamp: i64,
    ) {
        let place = self.times.len();
        self.size += bytes;
        self.values.push(value.map(|value| value.clone().unbind()));
        self.times.push(timestamp);
        if key.is_some() || !self.keys.is_empty() {
            if self.keys.len() < place {
                self.keys.reserve(self.values.capacity());
                self.keys.resize_with(place, || None);
            }
            self.keys.push(key.map(|key| key.clone().unbind()));
        }
        if let Some((object, bytes)) = headers {
            self.headers.push(Headers { place, object, bytes });
        }
        self.most = place + 1;
    }
}

/// Bytes of a record in a batch, at most.
fn record_bytes(
    value: Option<&Bound<'_, PyBytes>>,
    key: Option<&Bound<'_, PyBytes>>,
    headers: Option<&(Py<PyAny>, usize)>,
) -> usize {
    let length = |cell: Option<&Bound<'_, PyBytes>>| cell.map_or(0, |cell| cell.as_bytes().len());
    RECORD_MOST + length(value) + length(key) + headers.map_or(0, |(_, bytes)| *bytes)
}

fn no_message() -> PyErr {
    PyIndexError::new_err("no message is there")
}

fn new_place<'py>(
    place: &Bound<'py, PyType>,
    run: &Bound<'py, PyAny>,
    index: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let place = place.call1((run, index))?;
    untrack(&place);
    Ok(place)
}

/// The garbage collector does not look at the object any more, which is of a class with garbage collection.
fn untrack<T>(object: &Bound<'_, T>) {
    // SAFETY: the object lives, and any object of such a class may be taken off the collector's list, more than once: its
    // deallocation does the same.
    unsafe { ffi::PyObject_GC_UnTrack(object.as_ptr().cast()) };
}

/// A key or value: bytes of no subclass, or None; an error for what is neither.
#[inline]
fn exact<'a, 'py>(cell: &'a Bound<'py, PyAny>) -> Result<Option<&'a Bound<'py, PyBytes>>, ()> {
    match cell.cast_exact::<PyBytes>() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(_) if cell.is_none() => Ok(None),
        Err(_) => Err(()),
    }
}

fn cell<'a, 'py>(cell: &'a Bound<'py, PyAny>) -> PyResult<Option<&'a Bound<'py, PyBytes>>> {
    match cell.cast::<PyBytes>() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(_) if cell.is_none() => Ok(None),
        Err(_) => Err(PyTypeError::new_err("a message's key and value are bytes or None")),
    }
}

/// Headers with their bytes, if there are any.
fn some(headers: &Bound<'_, PyAny>, bytes: usize) -> PyResult<Option<(Py<PyAny>, usize)>> {
    Ok((headers.len()? > 0).then(|| (headers.clone().unbind(), bytes)))
}

fn copy(py: Python<'_>, cell: Option<&Py<PyBytes>>) -> Cell {
    cell.map(|cell| cell.clone_ref(py))
}

fn bytes<'a>(py: Python<'_>, cell: Option<&'a Py<PyBytes>>) -> Option<&'a [u8]> {
    cell.map(|cell| cell.as_bytes(py))
}

fn length(py: Python<'_>, cell: Option<&Py<PyBytes>>) -> usize {
    bytes(py, cell).map_or(0, <[u8]>::len)
}

/// ms since 1970.
fn present() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
