//! Decoding: dicts, lists and scalars made from what the codec finds.

use std::ops::Range;

use korvet_codec::schema::Sink;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PySlice, PyString};

/// Makes Python values.
pub(super) struct Make<'a, 'py> {
    keys: &'a [Py<PyString>],
    data: &'a Bound<'py, PyAny>,
    /// The whole of the data as a view of bytes, made when the first records are met.
    view: Option<Bound<'py, PyAny>>,
}

impl<'a, 'py> Make<'a, 'py> {
    pub(super) fn new(keys: &'a [Py<PyString>], data: &'a Bound<'py, PyAny>) -> Self {
        Self { keys, data, view: None }
    }

    fn view(&mut self) -> PyResult<Bound<'py, PyAny>> {
        if let Some(view) = &self.view {
            return Ok(view.clone());
        }
        let view = PyMemoryView::from(self.data)?.into_any();
        let plain = view.getattr("format")?.extract::<&str>()? == "B";
        let view = if plain { view } else { view.call_method1("cast", ("B",))? };
        self.view = Some(view.clone());
        Ok(view)
    }
}

impl<'py> Sink for Make<'_, 'py> {
    type Value = Bound<'py, PyAny>;
    type List = Bound<'py, PyList>;
    type Struct = Bound<'py, PyDict>;
    type Failure = PyErr;

    fn null(&mut self) -> Self::Value {
        self.data.py().None().into_bound(self.data.py())
    }

    fn boolean(&mut self, value: bool) -> Self::Value {
        PyBool::new(self.data.py(), value).to_owned().into_any()
    }

    fn integer(&mut self, value: i64) -> Self::Value {
        PyInt::new(self.data.py(), value).into_any()
    }

    fn float(&mut self, value: f64) -> Self::Value {
        PyFloat::new(self.data.py(), value).into_any()
    }

    fn text(&mut self, value: &str) -> Self::Value {
        PyString::new(self.data.py(), value).into_any()
    }

    fn bytes(&mut self, value: &[u8]) -> Self::Value {
        PyBytes::new(self.data.py(), value).into_any()
    }

    fn records(&mut self, place: Range<usize>) -> PyResult<Self::Value> {
        let slice = PySlice::new(self.data.py(), place.start as isize, place.end as isize, 1);
        self.view()?.get_item(slice)
    }

    fn tags(&mut self, tags: &[(u32, &[u8])]) -> PyResult<Self::Value> {
        let dict = PyDict::new(self.data.py());
        for (tag, body) in tags {
            dict.set_item(tag, PyBytes::new(self.data.py(), body))?;
        }
        Ok(dict.into_any())
    }

    fn open_list(&mut self, _count: usize) -> Self::List {
        PyList::empty(self.data.py())
    }

    fn push(&mut self, list: &mut Self::List, value: Self::Value) -> PyResult<()> {
        list.append(value)
    }

    fn close_list(&mut self, list: Self::List) -> Self::Value {
        list.into_any()
    }

    fn open(&mut self) -> Self::Struct {
        PyDict::new(self.data.py())
    }

    fn set(&mut self, to: &mut Self::Struct, slot: usize, value: Self::Value) -> PyResult<()> {
        to.set_item(&self.keys[slot], value)
    }

    fn close(&mut self, whole: Self::Struct) -> Self::Value {
        whole.into_any()
    }
}
