//! The figures of a result in words: the line of JSON has short names, people get what they mean, with units.

use clap::ValueEnum;
use gfn_plot::{Cell, Table};
use serde_json::{Map, Value};

/// What the names that don't say it themselves stand for.
const WORDS: &[(&str, &str)] = &[
    ("auprc", "area under precision and recall of known edges"),
    ("auprc_exact", "the same of the exact posterior (precision, recall)"),
    ("auroc", "area under the ROC curve of known edges"),
    ("auroc_exact", "the same of the exact posterior (ROC)"),
    ("best_of", "samples of each held-out graph"),
    ("blind", "without messages along edges (negative control)"),
    ("conditions", "by condition"),
    ("data_size", "trajectories in the data set"),
    ("dropped_mass", "probability that wasn't followed"),
    ("edge_pearson", "edge marginals, Pearson with exact"),
    ("edge_rmse", "edge marginals, RMSE from exact"),
    ("elbo", "lower bound on log Z"),
    ("ess", "effective share of samples"),
    ("eubo", "upper bound on log Z"),
    ("evaluated_samples", "samples for these"),
    ("expected_edges", "edges per graph, mean"),
    ("expected_shd", "edges off the known graph, mean"),
    ("focus_accuracy", "share within the focus"),
    ("front_size", "samples on their Pareto front"),
    ("given_points", "points given to learn from"),
    ("held_out", "held-out graphs"),
    ("held_out_graphs", "graphs held out"),
    ("hypervolume_of_all", "hypervolume of all molecules"),
    ("igd", "inverted generational distance from the front of all"),
    ("its_per_s", "iterations per s"),
    ("iteration_over_products", "time of an iteration over that of its matrix products"),
    ("larger", "graphs larger than those trained on, means"),
    ("jsd", "JSD"),
    ("jsd_floor", "JSD of as many perfect samples"),
    ("jsd_is_upper_bound", "JSD is an upper bound"),
    ("l1", "L1"),
    ("log_z", "log Z"),
    ("log_z_bound", "lower bound on log Z"),
    ("log_z_error", "log Z, off by"),
    ("log_z_importance", "log Z by importance weights"),
    ("log_z_interval", "  its 95 % interval"),
    ("log_z_pearson", "log Z of held-out graphs, Pearson with exact"),
    ("log_z_reweighted", "log Z by importance weights"),
    ("log_z_reweighted_error", "log Z by importance weights, off by"),
    ("log_z_reweighted_interval", "  its 95 % interval"),
    ("log_z_true", "log Z, true"),
    ("markov_blanket_pearson", "Markov blankets, Pearson with exact"),
    ("markov_blanket_rmse", "Markov blankets, RMSE from exact"),
    ("mean_log_reward", "log R, mean of samples"),
    ("mean_log_score", "log of the score, mean of samples"),
    ("mmd", "maximum mean discrepancy"),
    ("mode_share", "share of samples in modes"),
    ("modes_total", "modes in all"),
    ("most_probable", "most probable"),
    ("optima_known", "held-out graphs whose optimum is known"),
    ("path_pearson", "paths, Pearson with exact"),
    ("path_rmse", "paths, RMSE from exact"),
    ("peak_memory_mib", "most memory held, MiB"),
    ("products_ms", "matrix products per iteration, ms"),
    ("products_s", "matrix products per iteration, s"),
    ("products_share", "  share of the iteration"),
    ("r2", "R2 indicator"),
    ("r2_of_all", "R2 indicator of all molecules"),
    ("record_s", "recording, s"),
    ("round_trip_share", "share of samples read back the same from their SMILES"),
    ("scorer_asked", "molecules that the scorer was asked about"),
    ("scorer_from_cache", "  answered from memory"),
    ("scorer_processes", "  processes started"),
    ("scorer_wait_s", "  waiting for it, s"),
    ("share_of_optimum", "share of the optimum, best of these samples"),
    ("share_of_optimum_greedy", "  greedy solution"),
    ("share_of_optimum_local_search", "  greedy solution and local search"),
    ("share_of_optimum_mean", "  mean of samples"),
    ("spearman", "Spearman of log p and log R"),
    ("symmetry_corrected", "corrected for symmetry"),
    ("train_graphs", "graphs to train on"),
    ("true_edges", "known edges"),
    ("tv", "TV"),
    ("tv_curve", "TV of some held-out graphs, during training"),
    ("tv_largest", "TV, largest of a held-out graph"),
    ("tv_seen", "TV of some graphs that were trained on, mean"),
    ("tv_molecules", "TV of molecules, exact"),
    ("tv_of_r_over_aut", "TV of R / |Aut| from the target, exact"),
    ("train_s", "training, s"),
    ("tv_to_data", "TV from the data's shares"),
    ("tv_to_r_over_aut", "TV from R / |Aut|, exact"),
    ("valid_share", "share of valid objects"),
    ("w2", "Wasserstein-2 distance"),
    ("w2_perfect", "  of as many perfect samples"),
];

/// The columns of lists whose rows don't name their values.
const COLUMNS: &[(&str, &[&str])] = &[
    ("front", &["hydrogen bonds", "small polar surface"]),
    ("most_probable", &["object", "learned probability", "log R"]),
];

/// What a row is about, and so its first column.
const FIRST: [&str; 2] = ["condition", "preferences"];

/// What a name of the line of JSON stands for.
pub(crate) fn words(name: &str) -> String {
    let known = WORDS.iter().find(|(known, _)| *known == name);
    known.map_or_else(|| name.replace('_', " "), |(_, words)| (*words).to_owned())
}

/// A flag's value as it is written on the command line, in words.
pub(crate) fn value_words(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().replace('-', " "))
}

/// The value of a name as one cell; `None` for lists of rows and for named values, which take [several rows](fields) or tables of their own.
pub(crate) fn cell(name: &str, value: &Value) -> Option<Cell> {
    Some(match value {
        Value::Null => Cell::Missing,
        Value::Bool(yes) => (if *yes { "yes" } else { "no" }).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) if values.iter().any(|value| value.is_array() || value.is_object()) => return None,
        Value::Array(values) => {
            let between = if name.ends_with("interval") { " to " } else { ", " };
            values.iter().map(text).collect::<Vec<_>>().join(between).into()
        }
        Value::Object(_) => return None,
    })
}

/// The rows of named values below the name of all.
pub(crate) fn fields(values: &Map<String, Value>) -> Vec<[Cell; 2]> {
    let value = |name: &str, value: &Value| match value {
        Value::String(name) => spelt(name).into(),
        value => cell(name, value).unwrap_or_else(|| text(value).into()),
    };
    values.iter().map(|(name, of)| [format!("  {}", words(name)).into(), value(name, of)]).collect()
}

/// A list of rows as a table, with a heading where rows or [`COLUMNS`] name their values.
pub(crate) fn rows(name: &str, values: &[Value]) -> Table {
    let is_first = |name: &&String| FIRST.contains(&name.as_str());
    let ordered = |row: &Map<String, Value>| -> Vec<String> {
        row.keys().filter(is_first).chain(row.keys().filter(|name| !is_first(name))).cloned().collect()
    };
    let names = values.first().and_then(Value::as_object).map(ordered).unwrap_or_default();
    let known = COLUMNS.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, columns)| columns);
    let heading = names.iter().map(|name| words(name)).chain(known.iter().map(|&column| column.to_owned()));
    let mut table = Table::new(heading);
    for row in values {
        let cells: Vec<&Value> = match row {
            Value::Object(fields) => names.iter().map(|name| fields.get(name).unwrap_or(&Value::Null)).collect(),
            Value::Array(values) => values.iter().collect(),
            other => vec![other],
        };
        table.push(cells.into_iter().map(|value| cell("", value).unwrap_or_else(|| text(value).into())));
    }
    table
}

/// The name of a choice in words: `metropolis_hastings` and `MetropolisHastings` are `metropolis hastings`.
fn spelt(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        match letter {
            '_' => out.push(' '),
            letter if letter.is_uppercase() && out.chars().next_back().is_some_and(char::is_lowercase) => {
                out.push(' ');
                out.extend(letter.to_lowercase());
            }
            letter if out.is_empty() => out.extend(letter.to_lowercase()),
            letter => out.push(letter),
        }
    }
    out
}

/// A value in a line of text.
fn text(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => gfn_plot::number(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => text.replace('_', " "),
        other => other.to_string(),
    }
}
