//! A text that lists the differences between two descriptions of runs, or between two sets of settings.

use serde_json::Value;

/// The largest number of differences that are listed; further differences are only counted.
const SHOWN: usize = 5;

/// The largest number of characters of a value that are shown.
const LONGEST: usize = 80;

/// Lists the keys whose values differ between a checkpoint (`there`) and this run (`here`), with both values:
/// "`network.layers` is 2 there and 3 here". If `there` and `here` aren't JSON objects, they have no keys,
/// and the text begins with the name `whole` instead of a key.
pub(super) fn describe_changes(whole: &str, there: &Value, here: &Value) -> String {
    let mut found = Vec::new();
    collect(whole, "", there, here, &mut found);
    join_first(found, SHOWN)
}

/// Joins the first `shown` differences to one text, which ends with the number of the remaining differences.
pub(super) fn join_first(mut differences: Vec<String>, shown: usize) -> String {
    let more = differences.len().saturating_sub(shown);
    differences.truncate(shown);
    if more > 0 {
        differences.push(format!("and {more} more differences"));
    }
    differences.join("; ")
}

fn collect(whole: &str, key: &str, there: &Value, here: &Value, found: &mut Vec<String>) {
    match (there, here) {
        _ if there == here => {}
        (Value::Object(theirs), Value::Object(ours)) => {
            let added = ours.keys().filter(|name| !theirs.contains_key(*name));
            for name in theirs.keys().chain(added) {
                let inner = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                collect(whole, &inner, &there[name], &here[name], found);
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (place, (there, here)) in theirs.iter().zip(ours).enumerate() {
                collect(whole, &format!("{key}[{place}]"), there, here, found);
            }
        }
        _ => {
            let key = if key.is_empty() { whole.to_owned() } else { format!("`{key}`") };
            found.push(format!("{key} is {} there and {} here", describe(there), describe(here)));
        }
    }
}

/// Returns a value as text, cut to its first characters if it is long.
fn describe(value: &Value) -> String {
    let text = if value.is_null() { "not given".to_owned() } else { value.to_string() };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_that_differ_are_named_with_both_values_and_no_others() {
        let there = json!({ "nodes": 3, "network": { "layers": 2, "bias": true, "old": 1 }, "same": [1, 2] });
        let here =
            json!({ "nodes": 3, "network": { "layers": 3, "bias": true, "new": "x" }, "same": [1, 2] });
        let differences = |there: &Value, here: &Value| describe_changes("its description", there, here);
        let said = differences(&there, &here);
        assert_eq!(
            said,
            "`network.layers` is 2 there and 3 here; `network.old` is 1 there and not given here; \
             `network.new` is not given there and \"x\" here"
        );
        let from_class =
            |layers: usize| json!({ "run": [["Grid", { "side": 8 }], ["Net", { "layers": layers }]] });
        let said = differences(&from_class(2), &from_class(3));
        assert_eq!(said, "`run[1][1].layers` is 2 there and 3 here");
        assert_eq!(
            differences(&json!([1, 2]), &json!([1, 2, 3])),
            "its description is [1,2] there and [1,2,3] here"
        );
        assert_eq!(differences(&Value::Null, &json!(4)), "its description is not given there and 4 here");
        assert!(differences(&Value::Null, &json!(vec![1; 1000])).len() < 160);
        let many: Value =
            (0..9).map(|k| (format!("k{k}"), json!(k))).collect::<serde_json::Map<_, _>>().into();
        let said = differences(&json!({}), &many);
        assert!(
            said.contains("`k4`") && !said.contains("`k5`") && said.ends_with("and 4 more differences"),
            "{said}"
        );
    }
}
