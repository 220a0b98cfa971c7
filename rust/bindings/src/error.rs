//! The codec's error as `korvet_fast.errors.CodecError(code, message)`.

use korvet_codec::{Code, Error, Stop};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

static CODEC_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The result of a fallible function of the codec, on its way to Python.
pub(crate) trait OrRaise<T> {
    /// The value, or `CodecError` raised.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Error> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raise(py, &error))
    }
}

/// The Python exception for `error`.
#[cold]
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    match CODEC_ERROR.import(py, "korvet_fast.errors", "CodecError") {
        Ok(class) => match class.call1((error.code.name(), error.message.as_ref())) {
            Ok(exception) => PyErr::from_value(exception),
            Err(failure) => failure,
        },
        Err(failure) => failure,
    }
}

/// The Python exception for a value that does not fit.
#[cold]
pub(crate) fn bad_value(py: Python<'_>, message: String) -> PyErr {
    raise(py, &Error::new(Code::BadValue, message))
}

/// The Python exception for a walk that stopped.
#[cold]
pub(crate) fn stopped(py: Python<'_>, stop: Stop<PyErr>) -> PyErr {
    match stop {
        Stop::Rule(error) => raise(py, &error),
        Stop::Foreign(failure) => failure,
    }
}
