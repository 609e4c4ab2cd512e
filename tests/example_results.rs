//! What the examples share: files are tried before they are needed, and results are said in words.

#[allow(dead_code, unreachable_pub, reason = "the examples' module, used as it is")]
#[path = "../examples/reproduce/cli/outputs.rs"]
mod outputs;
#[allow(dead_code, unreachable_pub, reason = "the examples' module, used as it is")]
#[path = "../examples/reproduce/cli/words.rs"]
mod words;

use std::fs;

use gfn::Error;
use serde_json::json;

use crate::trainers::Folder;

#[test]
fn what_can_be_written_is_left_as_it_was() {
    let folder = Folder::new("tried");
    outputs::try_folder(&folder.join("new/pictures")).unwrap();
    assert_eq!(fs::read_dir(folder.join("new/pictures")).unwrap().count(), 0);
    outputs::try_file(&folder.join("of/metrics.jsonl")).unwrap();
    assert_eq!(fs::read_dir(folder.join("of")).unwrap().count(), 0);
    let old = folder.join("old.jsonl");
    fs::write(&old, "kept").unwrap();
    outputs::try_file(&old).unwrap();
    assert_eq!(fs::read_to_string(&old).unwrap(), "kept");
}

/// Opening a pipe that nobody reads would wait for ever.
#[test]
#[cfg(unix)]
fn a_pipe_is_left_alone() {
    let folder = Folder::new("pipe");
    let pipe = folder.join("metrics.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    outputs::try_file(&pipe).unwrap();
    assert!(pipe.exists());
}

#[test]
fn what_cannot_be_written_is_named() {
    let folder = Folder::new("untried");
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    // A folder in a file, a file in a file, a folder in place of a file.
    let refused = |tried: gfn::Result<()>, name: &str| {
        assert!(matches!(&tried, Err(Error::File { path, .. }) if path.ends_with(name)), "{tried:?}");
    };
    refused(outputs::try_folder(&file.join("pictures")), "file/pictures");
    refused(outputs::try_file(&file.join("metrics.jsonl")), "file");
    refused(outputs::try_file(&folder.0), folder.0.file_name().unwrap().to_str().unwrap());
}

#[test]
fn what_was_written_is_listed_once() {
    let written = outputs::Written::default();
    ["out/a.svg", "out/b.png", "out/a.svg"].iter().for_each(|path| written.clone().add(path.as_ref()));
    assert_eq!(written.lines(), "wrote out/a.svg\nwrote out/b.png\n");
}

#[test]
fn figures_are_said_in_words() {
    assert_eq!(words::words("log_z_error"), "log Z, off by");
    assert_eq!(words::words("record_s"), "recording, s");
    assert_eq!(words::words("distinct_samples"), "distinct samples");
    let cell = |name, value| format!("{:?}", words::cell(name, &value));
    for (name, value, shown) in [
        ("log_z_interval", json!([1.25, 2.5]), "1.250 to 2.500"),
        ("preferences", json!([0.25, 0.75]), "0.2500, 0.7500"),
        ("symmetry_corrected", json!(true), "yes"),
        ("modes_found", json!(null), "Missing"),
    ] {
        let cell = cell(name, value);
        assert!(cell.contains(shown), "{name}: {cell}");
    }
    let conditions = json!([{ "condition": 0.5, "log_z": 1.0 }, { "condition": 1.0, "log_z": null }]);
    assert!(words::cell("conditions", &conditions).is_none());
    let table = words::rows("conditions", conditions.as_array().unwrap()).to_string();
    assert_eq!(
        table,
        "condition  log Z\n---------  -----\n   0.5000  1.000\n    1.000  -\n".replace("  -\n", "      -\n")
    );

    // What a row is about comes first, whatever its name begins with; a row may lack a value.
    let preferences =
        [json!({ "log_z": 1.5, "focus_accuracy": 1, "preferences": [0.25, 0.75] }), json!({ "log_z": 2 })];
    let table = words::rows("conditions", &preferences).to_string();
    assert!(table.starts_with("preferences     share within the focus  log Z\n"), "{table}");
    assert!(table.ends_with("-                                    -      2\n"), "{table}");
    let table = words::rows("most_probable", &[json!(["CC_O", 0.5, 1.25])]).to_string();
    assert!(table.starts_with("object  learned probability  log R\n") && table.contains("CC_O"), "{table}");
}

#[test]
fn named_values_take_a_row_each() {
    for acceptance in ["metropolis_hastings", "MetropolisHastings"] {
        let search = json!({ "max_back": 8, "acceptance": acceptance, "rounds": [1, 2] });
        assert!(words::cell("local_search", &search).is_none());
        let rows = words::fields(search.as_object().unwrap());
        let table = rows.into_iter().fold(gfn_plot::Table::new(["local search"]), gfn_plot::Table::row).to_string();
        let lines: Vec<&str> = table.lines().skip(2).map(str::trim_start).collect();
        assert_eq!(
            lines,
            ["acceptance  metropolis hastings", "max back                      8", "rounds                     1, 2"]
        );
    }
}
