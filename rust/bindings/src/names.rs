//! Names that a regular expression fits.

use pyo3::prelude::*;

use crate::error::OrRaise;

/// Those of `names` that the regular expression fits from end to end, in linear time: RE2's language, its classes ASCII.
///
/// `BAD_PATTERN` for one that cannot be read (back-references, look-around), or takes more than 1 MiB compiled.
#[pyfunction]
pub(crate) fn match_names(py: Python<'_>, pattern: &str, names: Vec<String>) -> PyResult<Vec<String>> {
    py.detach(|| korvet_codec::names::matching(pattern, names)).or_raise(py)
}
