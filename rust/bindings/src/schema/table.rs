//! Rows of a Python table.

use korvet_codec::schema::{Field, Initial};
use korvet_codec::{Code, Error};
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyEllipsis, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyo3::{Borrowed, type_hint_identifier, type_hint_subscript};

use crate::error::raise;

/// A row on its way into the codec.
pub(super) struct Row(Field);

impl Row {
    pub(super) fn into_field(self) -> Field {
        self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Row {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_subscript!(
        type_hint_identifier!("builtins", "tuple"),
        type_hint_identifier!("typing", "Any"),
        PyStaticExpr::Constant { value: pyo3::inspect::PyStaticConstant::Ellipsis }
    );

    fn extract(row: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (name, kind, since, until, nullable, default, tag, fields): (
            String,
            String,
            i16,
            i16,
            i16,
            Bound<'py, PyAny>,
            i64,
            Vec<Row>,
        ) = row.extract()?;
        let tag = match tag {
            -1 => None,
            tag => Some(u32::try_from(tag).map_err(|_| bad_schema(row.py(), format!(".{name}: tag {tag}")))?),
        };
        let default = initial(&default, &name)?;
        let fields = fields.into_iter().map(Row::into_field).collect();
        Ok(Self(Field { name, kind, since, until, nullable, default, tag, fields }))
    }
}

fn initial(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Initial> {
    let empty = |length: usize| length == 0;
    if value.is_none() {
        return Ok(Initial::Null);
    }
    if value.is_instance_of::<PyEllipsis>() {
        return Ok(Initial::Zero);
    }
    if value.is_instance_of::<PyBool>() {
        return value.extract().map(Initial::Bool);
    }
    if value.is_instance_of::<PyInt>() {
        return value.extract().map(Initial::Int);
    }
    if value.is_instance_of::<PyFloat>() {
        return value.extract().map(Initial::Float);
    }
    if value.is_instance_of::<PyString>() {
        return value.extract().map(Initial::Text);
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Initial::Bytes(bytes.as_bytes().to_owned()));
    }
    let zero = value.cast::<PyList>().is_ok_and(|list| empty(list.len()))
        || value.cast::<PyTuple>().is_ok_and(|tuple| empty(tuple.len()))
        || value.cast::<PyDict>().is_ok_and(|dict| empty(dict.len()));
    if zero {
        return Ok(Initial::Zero);
    }
    Err(bad_schema(value.py(), format!(".{name}: this default cannot be had")))
}

/// An error of the table, found before the codec sees it.
fn bad_schema(py: Python<'_>, message: String) -> PyErr {
    raise(py, &Error::new(Code::BadSchema, message))
}
