//! Encoding: what the codec needs, taken out of dicts, lists and scalars.

use korvet_codec::schema::Source;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBoolMethods, PyDict, PyList, PyMapping, PyString, PyTuple};

use crate::buffer::Lent;

/// A struct.
pub(super) enum Fields<'py> {
    Named(Bound<'py, PyDict>),
    /// The first of them, in the order of the table.
    First(Bound<'py, PyTuple>),
}

#[inline(never)] // dicts are the rule, and their way is to stay short
fn first<'py>(tuple: &Bound<'py, PyTuple>, place: Option<usize>) -> PyResult<Option<Bound<'py, PyAny>>> {
    place.filter(|place| *place < tuple.len()).map(|place| tuple.get_item(place)).transpose()
}

/// Reads Python values.
pub(super) struct Take<'a, 'py> {
    py: Python<'py>,
    keys: &'a [Py<PyString>],
}

impl<'a, 'py> Take<'a, 'py> {
    pub(super) fn new(py: Python<'py>, keys: &'a [Py<PyString>]) -> Self {
        Self { py, keys }
    }
}

/// None where a conversion says that the value is of the wrong type or size, or is text with half a character in it;
/// its other failures stay failures.
fn fitting<T>(py: Python<'_>, result: PyResult<T>) -> PyResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error)
            if error.is_instance_of::<PyTypeError>(py)
                || error.is_instance_of::<PyOverflowError>(py)
                || error.is_instance_of::<PyUnicodeEncodeError>(py) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl<'py> Source for Take<'_, 'py> {
    type Value = Bound<'py, PyAny>;
    type Struct = Fields<'py>;
    type Lent = Lent<'py>;
    type Failure = PyErr;

    fn is_null(&self, value: &Self::Value) -> bool {
        value.is_none()
    }

    fn boolean(&self, value: &Self::Value) -> PyResult<Option<bool>> {
        Ok(value.cast::<PyBool>().ok().map(PyBoolMethods::is_true))
    }

    fn integer(&self, value: &Self::Value) -> PyResult<Option<i64>> {
        fitting(self.py, value.extract())
    }

    fn float(&self, value: &Self::Value) -> PyResult<Option<f64>> {
        fitting(self.py, value.extract())
    }

    fn text<'v>(&self, value: &'v Self::Value) -> PyResult<Option<&'v str>> {
        match value.cast::<PyString>() {
            Ok(text) => fitting(self.py, text.to_str()),
            Err(_) => Ok(None),
        }
    }

    fn bytes(&self, value: &Self::Value) -> PyResult<Option<Lent<'py>>> {
        fitting(self.py, value.extract())
    }

    fn records(&self, value: &Self::Value) -> PyResult<Option<Vec<Lent<'py>>>> {
        match value.cast::<PyList>() {
            Ok(buffers) => buffers.iter().map(|buffer| self.bytes(&buffer)).collect(),
            Err(_) => Ok(self.bytes(value)?.map(|lent| vec![lent])),
        }
    }

    fn tags(&self, value: &Self::Value) -> PyResult<Option<Vec<(u32, Lent<'py>)>>> {
        let Ok(tags) = value.cast::<PyDict>() else { return Ok(None) };
        let one = |(tag, body): (Self::Value, Self::Value)| {
            let tag = fitting(self.py, tag.extract())?;
            Ok(tag.zip(self.bytes(&body)?))
        };
        tags.iter().map(one).collect()
    }

    fn items(&self, value: &Self::Value) -> PyResult<Option<Vec<Self::Value>>> {
        Ok(match value.cast::<PyList>() {
            Ok(list) => Some(list.iter().collect()),
            Err(_) => value.cast::<PyTuple>().ok().map(|tuple| tuple.iter().collect()),
        })
    }

    fn open(&self, value: &Self::Value) -> PyResult<Option<Self::Struct>> {
        if let Ok(dict) = value.cast::<PyDict>() {
            return Ok(Some(Fields::Named(dict.clone())));
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            return Ok(Some(Fields::First(tuple.clone())));
        }
        match value.cast::<PyMapping>() {
            Ok(mapping) => {
                let dict = PyDict::new(self.py);
                dict.update(mapping)?;
                Ok(Some(Fields::Named(dict)))
            }
            Err(_) => Ok(None),
        }
    }

    #[inline]
    fn field(&self, of: &Self::Struct, slot: usize, place: Option<usize>) -> PyResult<Option<Self::Value>> {
        match of {
            Fields::Named(dict) => dict.get_item(&self.keys[slot]),
            Fields::First(tuple) => first(tuple, place),
        }
    }

    fn size(&self, of: &Self::Struct) -> usize {
        match of {
            Fields::Named(dict) => dict.len(),
            Fields::First(tuple) => tuple.len(),
        }
    }

    fn stranger(&self, of: &Self::Struct, slots: &[usize]) -> PyResult<Option<String>> {
        let of = match of {
            Fields::Named(dict) => dict,
            Fields::First(tuple) => {
                let fields = slots.len() - 1; // one is for unknown tags
                return Ok((tuple.len() > fields).then(|| format!("{fields}")));
            }
        };
        for key in of.keys() {
            let mut known = false;
            for slot in slots {
                let name = self.keys[*slot].bind(self.py);
                if key.is(name) || key.eq(name)? {
                    known = true;
                    break;
                }
            }
            if !known {
                return Ok(Some(key.str()?.to_str()?.to_owned()));
            }
        }
        Ok(None)
    }
}
