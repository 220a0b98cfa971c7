//! Names that a regular expression fits.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::error::OrRaise;

/// The `names` that the regular expression fits from end to end, the very objects given.
///
/// The language is RE2's but for `\Q..\E` and classes beyond ASCII. `BAD_PATTERN` for a pattern that cannot be read (one
/// with back-references or look-around, say), has more than 16 KiB, takes more than 512 KiB compiled, or needs more than
/// 6 million steps of one or two nanoseconds on these names.
#[pyfunction]
pub(crate) fn match_names(
    py: Python<'_>,
    pattern: &str,
    names: Vec<PyBackedStr>,
) -> PyResult<Vec<PyBackedStr>> {
    py.detach(|| korvet_codec::names::matching(pattern, names)).or_raise(py)
}
