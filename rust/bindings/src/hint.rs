//! Python values that say more of their type than `PyO3` knows; the stubs are generated from these.

use std::convert::Infallible;

use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyMapping};
use pyo3::{Borrowed, PyTypeInfo, type_hint_identifier, type_hint_subscript};

use crate::buffer::{Column, Input};

/// The values of a message: a mapping on the way in, a dict on the way out.
pub(crate) struct Values<'py>(pub(crate) Bound<'py, PyAny>);

impl<'py> FromPyObject<'_, 'py> for Values<'py> {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_subscript!(
        PyMapping::TYPE_HINT,
        type_hint_identifier!("builtins", "str"),
        type_hint_identifier!("typing", "Any")
    );

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(object.to_owned()))
    }
}

impl<'py> IntoPyObject<'py> for Values<'py> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = Infallible;

    const OUTPUT_TYPE: PyStaticExpr = type_hint_subscript!(
        PyDict::TYPE_HINT,
        type_hint_identifier!("builtins", "str"),
        type_hint_identifier!("typing", "Any")
    );

    fn into_pyobject(self, _py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(self.0)
    }
}

/// Columns by name: a mapping of buffers on the way in, a dict of `Column` on the way out.
pub(crate) struct Named<M>(pub(crate) M);

impl<'py> FromPyObject<'_, 'py> for Named<Bound<'py, PyMapping>> {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_subscript!(
        PyMapping::TYPE_HINT,
        type_hint_identifier!("builtins", "str"),
        Input::INPUT_TYPE
    );

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(object.cast::<PyMapping>()?.to_owned()))
    }
}

impl<'py> IntoPyObject<'py> for Named<Bound<'py, PyDict>> {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = Infallible;

    const OUTPUT_TYPE: PyStaticExpr =
        type_hint_subscript!(PyDict::TYPE_HINT, type_hint_identifier!("builtins", "str"), Column::TYPE_HINT);

    fn into_pyobject(self, _py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(self.0)
    }
}

/// Sequence numbers: of each topic those of its partitions.
pub(crate) struct Sequences<'py>(pub(crate) Bound<'py, PyMapping>);

impl<'py> FromPyObject<'_, 'py> for Sequences<'py> {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_subscript!(
        PyMapping::TYPE_HINT,
        type_hint_identifier!("builtins", "str"),
        type_hint_subscript!(
            type_hint_identifier!("collections.abc", "Sequence"),
            type_hint_identifier!("builtins", "int")
        )
    );

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(object.cast::<PyMapping>()?.to_owned()))
    }
}

/// A capsule, whose type Python names itself only from 3.13 on.
pub(crate) struct Capsule<'py>(pub(crate) Bound<'py, PyCapsule>);

impl<'py> IntoPyObject<'py> for Capsule<'py> {
    type Target = PyCapsule;
    type Output = Bound<'py, PyCapsule>;
    type Error = Infallible;

    const OUTPUT_TYPE: PyStaticExpr = type_hint_identifier!("typing_extensions", "CapsuleType");

    fn into_pyobject(self, _py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(self.0)
    }
}
