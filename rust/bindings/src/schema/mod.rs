//! Message shapes between bytes and dicts.

mod make;
mod table;
mod take;

use korvet_codec::schema::Parts;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::buffer::{LEND_FROM, Lent};
use crate::error::{OrRaise, stopped};
use crate::hint::Values;
use make::Make;
use table::Row;
use take::Take;

/// A message shape, compiled once from a table of fields.
///
/// A row is a tuple `(name, kind, since, until, nullable, default, tag, fields)`; shapes/field.py says what each means.
/// A missing or absent value is the row's default; `...` as default is the kind's zero.
#[pyclass(frozen, module = "korvet_fast._native")]
pub(crate) struct Schema {
    schema: korvet_codec::schema::Schema,
    /// The key of every slot, interned.
    keys: Vec<Py<PyString>>,
}

#[pymethods]
impl Schema {
    /// Compile `fields` for the versions `lowest` to `highest`, flexible (KIP-482) from `flexible` on. `BAD_SCHEMA`.
    #[new]
    fn new(
        py: Python<'_>,
        name: &str,
        fields: Vec<Row>,
        lowest: i16,
        highest: i16,
        flexible: i16,
    ) -> PyResult<Self> {
        let fields: Vec<_> = fields.into_iter().map(Row::into_field).collect();
        let schema =
            korvet_codec::schema::Schema::new(name, &fields, lowest, highest, flexible).or_raise(py)?;
        let keys = schema.names().iter().map(|name| PyString::intern(py, name).unbind()).collect();
        Ok(Self { schema, keys })
    }

    /// The name that the schema was made with; begins every error message.
    #[getter]
    fn name(&self) -> &str {
        self.schema.name()
    }

    /// The values of a message: every field of the table, whatever the version.
    ///
    /// `limit`: array elements and unknown tagged fields in all, which bounds memory. All of the data must be used.
    /// Records are views of the data. Unknown tagged fields are kept as `values["_tagged"] = {tag: bytes}`.
    ///
    /// `UNSUPPORTED_VERSION`, `TRUNCATED`, `TRAILING_BYTES`, `NEGATIVE_LENGTH`, `VARINT_OVERFLOW`, `BAD_UTF8`,
    /// `UNEXPECTED_NULL`, `COUNT_EXCEEDS_INPUT`, `TOO_MANY_ELEMENTS`, `DUPLICATE_TAG`, `OVERSIZE` (a string beyond
    /// 32,767 bytes).
    fn decode<'py>(
        &self,
        py: Python<'py>,
        data: Lent<'py>,
        version: i16,
        limit: usize,
    ) -> PyResult<Values<'py>> {
        let mut make = Make::new(&self.keys, &data);
        self.schema
            .decode(data.as_ref(), version, limit, &mut make)
            .map(Values)
            .map_err(|stop| stopped(py, stop))
    }

    /// The bytes of a message. What is missing in `values` becomes its default; tagged fields that equal it are left out;
    /// fields of other versions are left out. A struct within it may be a tuple: its first fields, in the table's order.
    ///
    /// `UNSUPPORTED_VERSION`; `BAD_VALUE` with the path of the field, also for a key that no version has.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        values: Values<'py>,
        version: i16,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut parts = Parts::new(usize::MAX);
        self.write(py, &values.0, version, &mut parts)?;
        Ok(PyBytes::new(py, &parts.into_inner().0))
    }

    /// As `encode`, behind a 32-bit length, and cut in parts: records of 4 KiB and more are the very objects given.
    /// `OUT_OF_RANGE` above 2 GiB.
    fn frame<'py>(
        &self,
        py: Python<'py>,
        values: Values<'py>,
        version: i16,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut parts = Parts::new(LEND_FROM);
        parts.leave_length();
        self.write(py, &values.0, version, &mut parts)?;
        parts.seal().or_raise(py)?;
        let (bytes, lent) = parts.into_inner();
        let mut list = Vec::with_capacity(2 * lent.len() + 1);
        let mut from = 0;
        for (at, lent) in lent {
            if at > from {
                list.push(PyBytes::new(py, &bytes[from..at]).into_any());
                from = at;
            }
            list.push(lent.into_object());
        }
        if bytes.len() > from {
            list.push(PyBytes::new(py, &bytes[from..]).into_any());
        }
        Ok(list)
    }
}

impl Schema {
    fn write<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        version: i16,
        parts: &mut Parts<Lent<'py>>,
    ) -> PyResult<()> {
        let take = Take::new(py, &self.keys);
        self.schema.encode(values, version, &take, parts).map_err(|stop| stopped(py, stop))
    }
}
