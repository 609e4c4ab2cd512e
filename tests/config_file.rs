//! Tests of the examples' configuration files: values, precedence and errors.

#[allow(dead_code, unreachable_pub, clippy::duplicate_mod, reason = "the examples' module, used as it is")]
#[path = "../examples/reproduce/flags/config_file.rs"]
mod examples;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use crate::trainers::Folder;
use clap::Parser;

#[derive(Parser, Debug)]
struct Args {
    #[arg(long)]
    config: Option<PathBuf>,
    #[arg(long, default_value_t = 8)]
    height: usize,
    #[arg(long)]
    lr: Option<f64>,
    #[arg(long)]
    log_z_lr: Option<f64>,
    #[arg(long, default_value_t = 0.0)]
    exit_bias: f64,
    #[arg(long, requires = "lr")]
    name: Option<String>,
    #[arg(long)]
    only: Vec<String>,
    #[arg(long)]
    json: bool,
}

fn parse_from<A: Parser>(args: impl IntoIterator<Item = impl Into<OsString>>) -> clap::error::Result<A> {
    let matches = examples::matches(&A::command(), args)?;
    A::from_arg_matches(&matches).map_err(|error| error.format(&mut A::command()))
}

/// Writes a configuration file with this text, and parses it together with these command-line arguments.
fn parse(folder: &Folder, text: &str, args: &[&str]) -> Result<Args, String> {
    let path = folder.join("run.toml");
    fs::write(&path, text).unwrap();
    let given = ["example", "--config", path.to_str().unwrap()].into_iter().chain(args.iter().copied());
    parse_from(given).map_err(|error| error.to_string())
}

#[test]
fn the_file_sets_flags_and_the_command_line_wins() {
    let folder = Folder::new("config");
    let text = "# a run\nheight = 20\nlr = 2e-3\nlog-z-lr = 1\nexit-bias = -1.5\nname = \"a b\"\nonly = \
        [\"tb\", \"db\"]\njson = true\n";
    let args = parse(&folder, text, &[]).unwrap();
    assert_eq!((args.height, args.lr, args.log_z_lr, args.exit_bias), (20, Some(2e-3), Some(1.0), -1.5));
    assert_eq!((args.name.as_deref(), args.json, args.config.is_some()), (Some("a b"), true, true));
    assert_eq!(args.only, ["tb", "db"]);

    // Windows editors put a byte-order mark at the beginning of a file. The mark must be skipped.
    assert_eq!(parse(&folder, "\u{feff}height = 20\n", &[]).unwrap().height, 20);

    // The command line has priority, even if it gives the default value.
    let args = parse(&folder, text, &["--height=8", "--only", "fm", "--lr", "0.1"]).unwrap();
    assert_eq!((args.height, args.lr, args.log_z_lr), (8, Some(0.1), Some(1.0)));
    assert_eq!(args.only, ["fm"]);

    let args = parse(&folder, "json = false", &[]).unwrap();
    assert!(!args.json && args.height == 8);
    let plain: Args = parse_from(["example", "--height", "5", "--exit-bias", "-2"]).unwrap();
    assert_eq!((plain.height, plain.exit_bias), (5, -2.0));
    // A negative number must be taken for a value, not for a flag.
    for given in [["example", "--height", "-5"].as_slice(), &["program", "first-task", "--height", "-5"]] {
        let message = match given.len() {
            3 => parse_from::<Args>(given).unwrap_err().to_string(),
            _ => parse_from::<Tasks>(given).unwrap_err().to_string(),
        };
        assert!(message.contains("invalid value '-5' for '--height <HEIGHT>'"), "{message}");
    }
}

/// A program with several tasks, like the example `reproduce`.
#[derive(Parser, Debug)]
enum Tasks {
    #[command(alias = "first_task")]
    FirstTask(Args),
    Other {
        #[arg(long)]
        seed: Option<u64>,
    },
}

/// Tests a configuration file for a program with several tasks. The file sets flags of the task on the
/// command line, whether the task is called by its name or by an alias. Tasks without the flag `--config`
/// must stay unchanged.
#[test]
fn a_file_sets_the_flags_of_its_task() {
    let folder = Folder::new("config-tasks");
    let path = folder.join("run.toml");
    fs::write(&path, "height = 20\nexit-bias = -1.5").unwrap();
    for name in ["first-task", "first_task"] {
        let given = ["program", name, "--height", "5", "--config", path.to_str().unwrap()];
        let Ok(Tasks::FirstTask(args)) = parse_from(given) else { panic!("{given:?}") };
        assert_eq!((args.height, args.exit_bias), (5, -1.5));
    }
    // The file must be read even if a flag before it is invalid. The error must be that of the flag.
    let given = ["program", "first-task", "--tall", "--config", path.to_str().unwrap()];
    let message = parse_from::<Tasks>(given).unwrap_err().to_string();
    assert!(message.contains("--tall"), "{message}");
    fs::write(&path, "seed = 1").unwrap();
    let given = ["program", "first-task", "--config", path.to_str().unwrap()];
    let message = parse_from::<Tasks>(given).unwrap_err().to_string();
    assert!(message.contains("unknown key `seed`") && message.contains("run.toml"), "{message}");
    let Ok(Tasks::Other { seed }) = parse_from(["program", "other", "--seed", "3"]) else { panic!() };
    assert_eq!(seed, Some(3));
    assert!(parse_from::<Tasks>(["program", "other", "--config", "run.toml"]).is_err());
}

#[test]
fn errors_name_file_and_key() {
    let folder = Folder::new("config-errors");
    for (text, words) in [
        ("heigth = 4", ["unknown key `heigth`", "the keys are height, lr"].as_slice()),
        ("config = \"other.toml\"", &["unknown key `config`"]),
        ("height = \"tall\"", &["'tall'", "--height"]),
        ("height = 4.5", &["'4.5'", "--height"]),
        ("height = -4", &["'-4'", "--height"]),
        ("height = true", &["`height` must be a number or text"]),
        ("height = [1, 2]", &["`height` must be a number or text"]),
        ("json = 1", &["`json` must be true or false"]),
        ("only = [true]", &["`only` must be"]),
        ("name = \"x\"", &["--lr"]),
        ("[height]\nx = 1", &["height"]),
        ("height = ", &["line 1"]),
    ] {
        let message = parse(&folder, text, &[]).unwrap_err();
        let named = message.contains("run.toml") && words.iter().all(|word| message.contains(word));
        assert!(named, "{text}: {message}");
    }
    let missing = parse_from::<Args>(["example", "--config", "no-such.toml"]).unwrap_err().to_string();
    assert!(missing.contains("no-such.toml can't be read"), "{missing}");
    // Errors on the command line must still be reported.
    let message = parse(&folder, "height = 4", &["--lrr", "1"]).unwrap_err();
    assert!(message.contains("--lrr"), "{message}");
    let help = parse(&folder, "height = 4", &["--help"]).unwrap_err();
    assert!(help.starts_with("Usage:") || help.contains("\nUsage:"), "{help}");
    assert!(!help.contains("run.toml"), "help is no error: {help}");
}

/// Tests texts with deep nesting, which would overflow the parser's stack. Such texts must give errors.
#[test]
fn texts_of_open_brackets_are_refused() {
    let deep = "a = ".to_owned() + &"{a=".repeat(5_000);
    let error = examples::from_toml::<serde_json::Value>(&deep).unwrap_err();
    assert!(error.contains("more than 100 brackets"), "{error}");
    let evading = "a = ".to_owned() + &"{a=\"}\",b=".repeat(5_000);
    assert!(examples::from_toml::<serde_json::Value>(&evading).is_err());
    let noted = "# in [0, 1)\n".repeat(200) + "a = \"[\"";
    assert!(examples::from_toml::<serde_json::Value>(&noted).is_ok());
    let nested = format!("a = {}1{}", "[".repeat(60), "]".repeat(60));
    assert!(examples::from_toml::<serde_json::Value>(&nested).is_ok());
}
