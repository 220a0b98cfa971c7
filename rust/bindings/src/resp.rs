//! Redis commands out of Python values, replies into them.

use korvet_codec::resp::{self, Sink};
use pyo3::IntoPyObjectExt;
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString};
use pyo3::{Borrowed, type_hint_identifier, type_hint_union};

use crate::buffer::Input;
use crate::error::stopped;

/// One argument of a command.
pub(crate) enum Argument {
    Text(String),
    Bytes(Input),
}

impl AsRef<[u8]> for Argument {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(input) => input.as_slice(),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Argument {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_union!(
        Input::INPUT_TYPE,
        type_hint_identifier!("builtins", "str"),
        type_hint_identifier!("builtins", "int")
    );

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = obj.cast::<PyString>() {
            return Ok(Self::Text(text.to_str()?.to_owned()));
        }
        if obj.is_instance_of::<PyInt>() {
            return Ok(Self::Text(obj.str()?.to_str()?.to_owned()));
        }
        obj.extract().map(Self::Bytes)
    }
}

/// A pipeline of Redis commands as RESP arrays of bulk strings. Text becomes UTF-8, an int its digits.
#[pyfunction]
pub(crate) fn pack(py: Python<'_>, commands: Vec<Vec<Argument>>) -> PyResult<Bound<'_, PyBytes>> {
    PyBytes::new_with(py, resp::packed_size(&commands), |out| {
        resp::pack(&commands, out);
        Ok(())
    })
}

/// RESP2 and RESP3 replies out of a byte stream. An error reply is returned (a `ReplyError`), not raised.
#[pyclass(module = "korvet_fast._native")]
pub(crate) struct Replies(resp::Replies<Py<PyAny>>);

#[pymethods]
impl Replies {
    /// Replies of at most `limit` bytes each.
    #[new]
    fn new(limit: usize) -> Self {
        Self(resp::Replies::new(limit))
    }

    /// Bytes of the unfinished reply held now.
    #[getter]
    fn pending(&self) -> usize {
        self.0.pending()
    }

    /// The replies that `data` completes.
    ///
    /// Simple string -> str, bulk and verbatim string -> bytes, integer and big number -> int, array, set and push ->
    /// list, map -> list of keys and values in turn (as RESP2 gives it), null -> None, double -> float, boolean -> bool,
    /// error -> `ReplyError`; an attribute is left out. Nested to 8 levels. `BAD_RESP`, `OVERSIZE` (a reply above the
    /// limit): the object is then dead and raises the same again.
    fn feed(&mut self, py: Python<'_>, data: Input) -> PyResult<Vec<Py<PyAny>>> {
        let mut done = Vec::new();
        self.0.feed(data.as_slice(), &mut Make(py), &mut done).map_err(|stop| stopped(py, stop))?;
        Ok(done)
    }
}

/// What Redis answered instead of a reply. `message` begins with a word for programs, as `WRONGTYPE`.
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
