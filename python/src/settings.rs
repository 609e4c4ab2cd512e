//! Settings: dictionaries that the classes of `gfn_rs` make of themselves.

use gfn::{Error, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads settings; `what` names them in errors.
pub(crate) fn read<T: DeserializeOwned>(what: &str, settings: &Bound<'_, PyAny>) -> PyResult<T> {
    let mut reader = pythonize::Depythonizer::from_object(settings);
    serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| PyValueError::new_err(format!("{what}: {}: {}", error.path(), error.inner())))
}

/// The defaults of some settings, with what is given in place of them; of the `nested` ones, part by part.
pub(crate) fn over_defaults<T>(what: &'static str, values: &Value, nested: &[&str]) -> Result<T>
where
    T: Default + Serialize + DeserializeOwned,
{
    let refuse = |got: String, expected| Err(Error::config(what, got, expected));
    let default = serde_json::to_value(T::default()).map_err(|error| Error::external(what, error))?;
    let (Value::Object(mut settings), Value::Object(values)) = (default, values) else {
        return refuse(values.to_string(), "settings by name");
    };
    for (name, value) in values {
        if !settings.contains_key(name) {
            // One that isn't written at its default refuses a value of no kind that there is; any other name is passed over.
            let mut probed = settings.clone();
            probed.insert(name.clone(), serde_json::json!({ "": [] }));
            if serde_json::from_value::<T>(Value::Object(probed)).is_ok() {
                return refuse(format!("a setting named `{name}`"), "one of the settings that there are");
            }
            settings.insert(name.clone(), Value::Null);
        }
        match (settings.get_mut(name), value) {
            (None, _) => {}
            (Some(Value::Object(parts)), Value::Object(values)) if nested.contains(&name.as_str()) => {
                for (part, value) in values {
                    match parts.get_mut(part) {
                        None => {
                            return refuse(
                                format!("a setting named `{name}.{part}`"),
                                "one of the settings that there are",
                            );
                        }
                        Some(place) => *place = value.clone(),
                    }
                }
            }
            (Some(place), value) => *place = value.clone(),
        }
    }
    serde_json::from_value(Value::Object(settings))
        .or_else(|error| refuse(error.to_string(), "settings of the right types"))
}
