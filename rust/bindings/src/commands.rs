//! Redis commands out of Python values.

use korvet_codec::resp::{self, EncodedPart};
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyInt, PyString};
use pyo3::{Borrowed, type_hint_identifier, type_hint_union};

use crate::buffer::{Input, LEND_FROM, Lent};

/// One argument of a command.
pub(crate) enum Argument<'py> {
    Text(PyBackedStr),
    Number(String),
    Bytes(Bound<'py, PyBytes>),
    Buffer(Lent<'py>),
}

impl AsRef<[u8]> for Argument<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_ref(),
            Self::Number(digits) => digits.as_bytes(),
            Self::Bytes(bytes) => bytes.as_bytes(),
            Self::Buffer(buffer) => buffer.as_ref(),
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
            return text.to_owned().try_into().map(Self::Text);
        }
        if let Ok(bytes) = obj.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.to_owned()));
        }
        if obj.is_exact_instance_of::<PyInt>()
            && let Ok(number) = obj.extract::<i64>()
        {
            return Ok(Self::Number(number.to_string()));
        }
        if obj.is_instance_of::<PyInt>() {
            return obj.str()?.try_into().map(Self::Text);
        }
        obj.extract().map(Self::Buffer)
    }
}

/// Encode a pipeline of Redis commands as RESP arrays of bulk strings. Text becomes UTF-8, an int its digits.
#[pyfunction]
pub(crate) fn encode_commands<'py>(
    py: Python<'py>,
    commands: Vec<Vec<Argument<'py>>>,
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, resp::encoded_size(&commands), |out| {
        resp::encode_commands(&commands, out);
        Ok(())
    })
}

/// As `encode_commands`, in parts: an argument of 4 KiB and more is a part of its own, and a buffer among these is the
/// very object given.
#[pyfunction]
pub(crate) fn encode_command_parts<'py>(
    py: Python<'py>,
    commands: Vec<Vec<Argument<'py>>>,
) -> Vec<Bound<'py, PyAny>> {
    let part = |part| match part {
        EncodedPart::Packed(bytes) => PyBytes::new(py, &bytes).into_any(),
        EncodedPart::Argument(Argument::Bytes(bytes)) => bytes.clone().into_any(),
        EncodedPart::Argument(Argument::Buffer(buffer)) => buffer.object().clone(),
        EncodedPart::Argument(text) => PyBytes::new(py, text.as_ref()).into_any(),
    };
    resp::encode_command_parts(&commands, LEND_FROM).into_iter().map(part).collect()
}
