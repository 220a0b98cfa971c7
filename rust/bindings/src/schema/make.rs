//! Decoding: dicts, lists and scalars made from what the codec finds.

use std::ops::Range;

use korvet_codec::schema::Sink;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::buffer::{Lent, cut};

/// Makes Python values.
pub(super) struct Make<'a, 'py> {
    py: Python<'py>,
    keys: &'a [Py<PyString>],
    data: &'a Lent<'py>,
    /// The whole of the data as a view of bytes, made when the first records are met.
    view: Option<Bound<'py, PyAny>>,
}

impl<'a, 'py> Make<'a, 'py> {
    pub(super) fn new(keys: &'a [Py<PyString>], data: &'a Lent<'py>) -> Self {
        Self { py: data.object().py(), keys, data, view: None }
    }
}

impl<'py> Sink for Make<'_, 'py> {
    type Value = Bound<'py, PyAny>;
    type List = Bound<'py, PyList>;
    type Struct = Bound<'py, PyDict>;
    type Failure = PyErr;

    fn null(&mut self) -> Self::Value {
        self.py.None().into_bound(self.py)
    }

    fn boolean(&mut self, value: bool) -> Self::Value {
        PyBool::new(self.py, value).to_owned().into_any()
    }

    fn integer(&mut self, value: i64) -> Self::Value {
        PyInt::new(self.py, value).into_any()
    }

    fn float(&mut self, value: f64) -> Self::Value {
        PyFloat::new(self.py, value).into_any()
    }

    fn text(&mut self, value: &str) -> Self::Value {
        PyString::new(self.py, value).into_any()
    }

    fn bytes(&mut self, value: &[u8]) -> Self::Value {
        PyBytes::new(self.py, value).into_any()
    }

    fn records(&mut self, place: Range<usize>) -> PyResult<Self::Value> {
        let view = match self.view.take() {
            Some(view) => view,
            None => self.data.view()?,
        };
        Ok(cut(self.view.insert(view), place)?.into_any())
    }

    fn tags(&mut self, tags: &[(u32, &[u8])]) -> PyResult<Self::Value> {
        let dict = PyDict::new(self.py);
        for (tag, body) in tags {
            dict.set_item(tag, PyBytes::new(self.py, body))?;
        }
        Ok(dict.into_any())
    }

    fn open_list(&mut self, _count: usize) -> Self::List {
        PyList::empty(self.py)
    }

    fn push(&mut self, list: &mut Self::List, value: Self::Value) -> PyResult<()> {
        list.append(value)
    }

    fn close_list(&mut self, list: Self::List) -> Self::Value {
        list.into_any()
    }

    fn open(&mut self) -> Self::Struct {
        PyDict::new(self.py)
    }

    fn set(&mut self, to: &mut Self::Struct, slot: usize, value: Self::Value) -> PyResult<()> {
        to.set_item(&self.keys[slot], value)
    }

    fn close(&mut self, whole: Self::Struct) -> Self::Value {
        whole.into_any()
    }
}
