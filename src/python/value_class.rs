//! Classes of results: frozen values with attributes, equality, a hash, a `repr` and pickling.

use pyo3::IntoPyObjectExt;
use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error;
use crate::error::Error;

/// Defines a class that wraps a struct of the core. An attribute is the field with this name, or the result
/// of a function of the struct. `__repr__` shows the attributes of the list `repr`. A class that defines
/// `__repr__` itself has a list `attributes` instead.
macro_rules! value_class {
    (
        $name:literal, $class:ident($core:ident),
        repr { $($shown:ident: $shown_type:ty $(= $shown_by:expr)?),+ $(,)? }
        $(more { $($more:ident: $more_type:ty $(= $more_by:expr)?),+ $(,)? })?
        $(methods { $($methods:tt)* })?
    ) => {
        value_class! {
            $name, $class($core),
            attributes {
                $($shown: $shown_type $(= $shown_by)?,)+
                $($($more: $more_type $(= $more_by)?,)+)?
            }
            methods {
                fn __repr__(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<String> {
                    let mut fields = Vec::new();
                    $(
                        let value = pyo3::IntoPyObjectExt::into_bound_py_any(self.$shown(), py)?;
                        fields.push(format!("{}={}", stringify!($shown), $crate::python::arguments::shown(&value)));
                    )+
                    Ok(format!("{}({})", $name, fields.join(", ")))
                }

                $($($methods)*)?
            }
        }
    };
    (
        $name:literal, $class:ident($core:ident),
        attributes { $($attribute:ident: $type:ty $(= $by:expr)?),+ $(,)? }
        methods { $($methods:tt)* }
    ) => {
        #[doc = stub_doc!($core)]
        #[pyo3::pyclass(frozen, eq, hash, module = "cordwood", name = $name)]
        #[derive(PartialEq, Eq, Hash)]
        pub(super) struct $class(pub(super) $core);

        impl From<$core> for $class {
            fn from(value: $core) -> Self {
                Self(value)
            }
        }

        #[pyo3::pymethods]
        impl $class {
            $(
                #[doc = stub_doc!($core.$attribute)]
                #[getter]
                fn $attribute(&self) -> $type {
                    value_class!(@attribute $core, self.0, $attribute, $type $(, $by)?)
                }
            )+

            fn __reduce__<'py>(&self, py: pyo3::Python<'py>) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::PyAny>> {
                $crate::python::value_class::pickled::<Self>(py, &self.0)
            }

            #[staticmethod]
            fn _unpickled(py: pyo3::Python<'_>, state: &str) -> pyo3::PyResult<Self> {
                $crate::python::value_class::unpickled(py, $name, state).map(Self)
            }

            $($methods)*
        }
    };
    (@attribute $core:ident, $value:expr, $attribute:ident, $type:ty) => {
        $value.$attribute.clone()
    };
    (@attribute $core:ident, $value:expr, $attribute:ident, $type:ty, $by:expr) => {{
        let by: fn(&$core) -> $type = $by;
        by(&$value)
    }};
}

pub(super) use value_class;

/// The value of `__reduce__`: the class's function `_unpickled`, and its argument, the value as JSON.
pub(super) fn pickled<'py, C: PyTypeInfo>(
    py: Python<'py>,
    value: &impl Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    let state = serde_json::to_string(value);
    let state = state.map_err(|wrong| pyo3::exceptions::PyValueError::new_err(wrong.to_string()))?;
    (py.get_type::<C>().getattr("_unpickled")?, (state,)).into_bound_py_any(py)
}

/// The value of [`pickled`].
///
/// # Errors
/// [`Error::Config`] if the state is that of no value of the class.
pub(super) fn unpickled<T: DeserializeOwned>(py: Python<'_>, class: &str, state: &str) -> PyResult<T> {
    serde_json::from_str(state).map_err(|wrong| {
        let expected = format!("the state of a {class} of this version of cordwood");
        error::to_python(py, Error::config("pickle", expected, wrong.to_string()))
    })
}

/// A list of the core's structs as one of the classes that wrap them.
pub(super) fn wrapped<T: Clone, C: From<T>>(items: &[T]) -> Vec<C> {
    items.iter().cloned().map(C::from).collect()
}
