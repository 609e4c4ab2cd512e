//! Reading settings from the dictionaries that the classes of `gfn_rs` create.

use gfn::{Error, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads settings from a Python dictionary. Error messages name the settings by `what`.
pub(crate) fn read<T: DeserializeOwned>(what: &str, settings: &Bound<'_, PyAny>) -> PyResult<T> {
    let mut reader = pythonize::Depythonizer::from_object(settings);
    serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| PyValueError::new_err(format!("{what}: {}: {}", error.path(), error.inner())))
}

/// A value of type `T` that is read from a Python dictionary of settings.
pub(crate) struct Settings<T>(pub(crate) T);

impl<'py, T: DeserializeOwned> FromPyObject<'_, 'py> for Settings<T> {
    type Error = PyErr;

    fn extract(settings: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        read("settings", &settings).map(Self)
    }
}

/// Returns the default settings of `T`, in which `values` replace the defaults. In a nested group of
/// settings, only the given settings are replaced.
pub(crate) fn over_defaults<T>(what: &'static str, values: &Map<String, Value>) -> Result<T>
where
    T: Default + Serialize + DeserializeOwned,
{
    let mut settings = serde_json::to_value(T::default()).map_err(|error| Error::external(what, error))?;
    for (name, value) in values {
        match (&mut settings[name], value) {
            (Value::Object(group), Value::Object(values)) => {
                for (part, value) in values {
                    let Some(place) = group.get_mut(part) else {
                        let got = format!("a setting named `{name}.{part}`");
                        return Err(Error::config(what, got, "a setting that exists"));
                    };
                    *place = value.clone();
                }
            }
            (place, value) => *place = value.clone(),
        }
    }
    serde_json::from_value(settings)
        .map_err(|error| Error::config(what, error.to_string(), "settings of the right types"))
}
