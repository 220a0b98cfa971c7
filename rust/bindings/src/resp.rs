//! Redis replies into Python values, or whole and unparsed.

use korvet_codec::resp::{self, Groups, Sink};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyString};

use crate::buffer::Input;
use crate::error::{OrRaise, bad_value, stopped};

/// RESP2 and RESP3 replies out of a byte stream, parsed or (`raw`) as they came.
#[pyclass(module = "korvet_fast._native")]
pub(crate) struct Replies(ReplyReader);

enum ReplyReader {
    Parsed(resp::Replies<Py<PyAny>>),
    /// With the bytes of the group begun.
    Raw(Groups, Option<Py<PyByteArray>>),
}

#[pymethods]
impl Replies {
    /// Replies of at most `limit` bytes each.
    #[new]
    #[pyo3(signature = (limit, raw = false))]
    fn new(limit: usize, raw: bool) -> Self {
        Self(if raw {
            ReplyReader::Raw(Groups::new(limit), None)
        } else {
            ReplyReader::Parsed(resp::Replies::new(limit))
        })
    }

    /// Bytes held of what is unfinished: of a reply, or (`raw`) of a group.
    #[getter]
    fn pending(&self, py: Python<'_>) -> usize {
        match &self.0 {
            ReplyReader::Parsed(replies) => replies.pending(),
            ReplyReader::Raw(_, held) => held.as_ref().map_or(0, |held| held.bind(py).len()),
        }
    }

    /// The next `count` replies, after those joined before, come out of `feed` as one buffer, one behind the other.
    ///
    /// A reply that is not joined is a buffer of its own. `BAD_VALUE` for a count of 0, and where replies are parsed.
    fn join(&mut self, py: Python<'_>, count: usize) -> PyResult<()> {
        match &mut self.0 {
            ReplyReader::Raw(groups, _) if count > 0 => groups.join(count),
            ReplyReader::Raw(..) => return Err(bad_value(py, "no replies at all are no group".into())),
            ReplyReader::Parsed(_) => return Err(bad_value(py, "parsed replies are not joined".into())),
        }
        Ok(())
    }

    /// The replies that `data` completes; if they are `raw`, a bytearray for each, or for each group.
    ///
    /// Simple string -> str, bulk and verbatim string -> bytes, integer and big number -> int, array, set and push ->
    /// list, map -> list of keys and values in turn (as RESP2 gives it), null -> None, double -> float, boolean -> bool,
    /// error -> `ReplyError`, not raised; an attribute is left out. Nested to 8 levels. `BAD_RESP`, `OVERSIZE` (a reply
    /// above the limit), `raw` or not: the object is then dead and raises the same again. A raw reply that is whole in
    /// `data` is copied once; nothing is looked at twice however it is cut.
    fn feed(&mut self, py: Python<'_>, data: Input) -> PyResult<Vec<Py<PyAny>>> {
        let data = data.as_slice();
        match &mut self.0 {
            ReplyReader::Parsed(replies) => {
                let mut done = Vec::new();
                replies.feed(data, &mut Make(py), &mut done).map_err(|stop| stopped(py, stop))?;
                Ok(done)
            }
            ReplyReader::Raw(groups, held) => cut(py, groups, held, data),
        }
    }
}

/// The groups that `data` completes, `held` holding the bytes of one that is unfinished.
fn cut(
    py: Python<'_>,
    groups: &mut Groups,
    held: &mut Option<Py<PyByteArray>>,
    mut data: &[u8],
) -> PyResult<Vec<Py<PyAny>>> {
    let mut done = Vec::new();
    if let Some(group) = held.take() {
        let group = group.into_bound(py);
        let before = group.len();
        group.resize(before + data.len())?;
        // SAFETY: no Python code has a reference to `group` yet, and none runs while the slice is used.
        let bytes = unsafe { group.as_bytes_mut() };
        bytes[before..].copy_from_slice(data);
        let end = groups.end(bytes).or_raise(py)?;
        let Some(end) = end else {
            *held = Some(group.unbind());
            return Ok(done);
        };
        group.resize(end)?;
        data = &data[end - before..];
        done.push(group.into_any().unbind());
    }
    while let Some(end) = groups.end(data).or_raise(py)? {
        done.push(PyByteArray::new(py, &data[..end]).into_any().unbind());
        data = &data[end..];
    }
    if !data.is_empty() {
        *held = Some(PyByteArray::new(py, data).unbind());
    }
    Ok(done)
}

/// The reply at the front of `raw`, as `Replies` would give it; what follows it is not looked at.
///
/// `TRUNCATED` if it is not all there, `BAD_RESP`, `OVERSIZE` (an array that no memory holds).
#[pyfunction]
pub(crate) fn parse_reply(py: Python<'_>, raw: Input) -> PyResult<Py<PyAny>> {
    Ok(resp::parse_reply(raw.as_slice(), &mut Make(py)).map_err(|stop| stopped(py, stop))?.0)
}

/// All replies of `raw`, one behind the other, as `Replies` would give them. Raises as `parse_reply`.
#[pyfunction]
pub(crate) fn parse_replies(py: Python<'_>, raw: Input) -> PyResult<Vec<Py<PyAny>>> {
    let (mut data, mut found) = (raw.as_slice(), Vec::new());
    while !data.is_empty() {
        let (value, size) = resp::parse_reply(data, &mut Make(py)).map_err(|stop| stopped(py, stop))?;
        found.push(value);
        data = &data[size..];
    }
    Ok(found)
}

/// An error reply of Redis. `message` begins with a word for programs, as `WRONGTYPE`.
#[pyclass(frozen, eq, hash, module = "korvet_fast._native")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct ReplyError {
    /// The whole text.
    #[pyo3(get)]
    message: String,
}

#[pymethods]
impl ReplyError {
    /// An error reply of this text.
    #[new]
    fn new(message: String) -> Self {
        Self { message }
    }

    /// As it would be written in Python.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("ReplyError({})", PyString::new(py, &self.message).repr()?))
    }
}

struct Make<'py>(Python<'py>);

impl Sink for Make<'_> {
    type Value = Py<PyAny>;
    type Failure = PyErr;

    fn null(&mut self) -> Py<PyAny> {
        self.0.None()
    }

    fn boolean(&mut self, value: bool) -> Py<PyAny> {
        PyBool::new(self.0, value).to_owned().into_any().unbind()
    }

    fn integer(&mut self, value: i64) -> Py<PyAny> {
        PyInt::new(self.0, value).into_any().unbind()
    }

    fn big(&mut self, digits: &str) -> PyResult<Py<PyAny>> {
        self.0.get_type::<PyInt>().call1((digits,)).map(Bound::unbind)
    }

    fn float(&mut self, value: f64) -> Py<PyAny> {
        PyFloat::new(self.0, value).into_any().unbind()
    }

    fn text(&mut self, value: &str) -> Py<PyAny> {
        PyString::new(self.0, value).into_any().unbind()
    }

    fn bytes(&mut self, value: &[u8]) -> Py<PyAny> {
        PyBytes::new(self.0, value).into_any().unbind()
    }

    fn error(&mut self, message: &str) -> PyResult<Py<PyAny>> {
        ReplyError { message: message.to_owned() }.into_py_any(self.0)
    }

    fn list(&mut self, items: Vec<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        Ok(PyList::new(self.0, items)?.into_any().unbind())
    }
}
