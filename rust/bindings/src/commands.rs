//! Redis commands out of Python values.

use korvet_codec::resp::{self, Part};
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};
use pyo3::{Borrowed, type_hint_identifier, type_hint_union};

use crate::buffer::{Input, LEND_FROM, Lent};

/// One argument of a command.
pub(crate) enum Argument<'py> {
    Text(String),
    Bytes(Lent<'py>),
}

impl AsRef<[u8]> for Argument<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes.as_ref(),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Argument<'py> {
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
pub(crate) fn pack<'py>(py: Python<'py>, commands: Vec<Vec<Argument<'py>>>) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, resp::packed_size(&commands), |out| {
        resp::pack(&commands, out);
        Ok(())
    })
}

/// As `pack`, cut in parts: a word of 4 KiB and more is a part of its own, and if it is a buffer the very object given.
#[pyfunction]
pub(crate) fn pack_parts<'py>(py: Python<'py>, commands: Vec<Vec<Argument<'py>>>) -> Vec<Bound<'py, PyAny>> {
    let part = |part| match part {
        Part::Packed(bytes) => PyBytes::new(py, &bytes).into_any(),
        Part::Argument(Argument::Text(text)) => PyBytes::new(py, text.as_bytes()).into_any(),
        Part::Argument(Argument::Bytes(bytes)) => bytes.object().clone(),
    };
    resp::parts(&commands, LEND_FROM).into_iter().map(part).collect()
}
