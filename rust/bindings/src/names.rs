//! Names that a regular expression fits.

use pyo3::prelude::*;

use crate::error::OrRaise;

/// Those of `names` that the regular expression fits from end to end, in linear time.
///
/// The language is RE2's but for `\Q..\E` and classes beyond ASCII. `BAD_PATTERN` for a pattern that cannot be read (one
/// with back-references or look-around, say), or takes more than 1 MiB compiled.
#[pyfunction]
pub(crate) fn match_names(py: Python<'_>, pattern: &str, names: Vec<String>) -> PyResult<Vec<String>> {
    py.detach(|| korvet_codec::names::matching(pattern, names)).or_raise(py)
}
