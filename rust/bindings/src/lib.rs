//! The Python face of `korvet_codec`: conversions only, one call per batch or more.

// Python's arguments arrive as values of their own.
#![allow(clippy::needless_pass_by_value)]

mod batch;
mod buffer;
mod columns;
mod error;
mod frames;
mod ids;
mod legacy;
mod resp;
mod schema;

use pyo3::prelude::*;

/// The native contract.
#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    buffer::register(m)?;
    frames::register(m)?;
    schema::register(m)?;
    batch::register(m)?;
    columns::register(m)?;
    legacy::register(m)?;
    ids::register(m)?;
    resp::register(m)
}
