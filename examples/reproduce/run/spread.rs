//! The mean and the spread of the reports of several seeds.

use serde_json::{Map, Value, json};

/// The entries of a report that are numbers, but settings instead of results.
const SETTINGS: [&str; 6] = ["seed", "steps", "batch", "threads", "members", "params"];

/// Returns the mean of several reports. The mean of numbers is a number, and the mean of objects has the
/// means of their entries. Any other value is kept if it is equal in all reports, and is null otherwise.
pub(crate) fn mean(values: &[&Value]) -> Value {
    let Some(first) = values.first() else { return Value::Null };
    if values.iter().all(|value| value == first) {
        return (*first).clone();
    }
    if let Some(numbers) = numbers(values) {
        return json!(numbers.iter().sum::<f64>() / numbers.len() as f64);
    }
    if values.iter().all(|value| value.is_object()) {
        return keys(values)
            .map(|key| (key.clone(), mean(&entries(values, key))))
            .collect::<Map<_, _>>()
            .into();
    }
    Value::Null
}

/// Returns the mean, the standard deviation (with the divisor n - 1), the minimum and the maximum of each
/// entry that is a number in all of the reports, except settings.
pub(crate) fn spread(reports: &[&Value]) -> Map<String, Value> {
    let metrics = keys(reports).filter(|key| !SETTINGS.contains(&key.as_str()));
    metrics.filter_map(|key| Some((key.clone(), describe(&numbers(&entries(reports, key))?)))).collect()
}

fn describe(numbers: &[f64]) -> Value {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let sum_of_squares = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let sd = (sum_of_squares / (n - 1.0)).sqrt();
    let min = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let max = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    json!({ "mean": mean, "sd": sd, "min": min, "max": max })
}

/// Returns the values as numbers; `None` if one of them isn't a number.
fn numbers(values: &[&Value]) -> Option<Vec<f64>> {
    values.iter().map(|value| value.as_f64()).collect()
}

/// Returns the keys of the first object.
fn keys<'a>(objects: &[&'a Value]) -> impl Iterator<Item = &'a String> + use<'a> {
    objects.first().and_then(|first| first.as_object()).into_iter().flat_map(Map::keys)
}

/// Returns the entry with this key of each object; null if an object doesn't have it.
fn entries<'a>(objects: &[&'a Value], key: &str) -> Vec<&'a Value> {
    objects.iter().map(|object| &object[key]).collect()
}
