//! What the program was asked to do: a task, and its flags as they were used.

use std::sync::OnceLock;

use clap::builder::ArgAction;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A task and its flags: those that were given, those of a `--config` file, and the defaults of the rest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct TaskFlags {
    pub(crate) task: String,
    pub(crate) flags: Map<String, Value>,
}

/// A process has one command line: all of it, and the flags that were given.
static OF_PROCESS: OnceLock<(TaskFlags, Vec<String>)> = OnceLock::new();

/// Flags that say where a run is kept and how it is shown, not what it computes.
const ASIDE: [&str; 6] = ["run", "resume", "checkpoint-every", "tensorboard", "config", "json"];

/// Keeps the command line of a process.
pub(crate) fn remember(program: &Command, matches: &ArgMatches) {
    let Some((asked, (_, flags))) = TaskFlags::of(program, matches).zip(matches.subcommand()) else { return };
    let given = |name: &&String| {
        let id = name.replace('-', "_");
        flags.try_contains_id(&id).unwrap_or(false) && flags.value_source(&id) == Some(ValueSource::CommandLine)
    };
    let nothing = |name: &&String| [json!(0), json!(0.0), json!(false)].contains(&asked.flags[*name]);
    let given =
        asked.flags.keys().filter(given).filter(|name| !nothing(name)).map(|name| format!("--{name}")).collect();
    // A process is asked once: what was remembered first stays.
    let _ = OF_PROCESS.set((asked, given));
}

/// Refuses flags that were given to something else than 0, where they would do nothing.
pub(crate) fn refuse(flags: &[&'static str], expected: &'static str) -> Result<()> {
    let given = OF_PROCESS.get().map_or(&[][..], |(_, given)| given);
    match flags.iter().find(|flag| given.iter().any(|name| name == *flag)) {
        Some(flag) => Err(Error::config(flag, "given", expected)),
        None => Ok(()),
    }
}

impl TaskFlags {
    /// What was asked of a program whose subcommands are tasks; `None` where no task was named.
    pub(crate) fn of(program: &Command, matches: &ArgMatches) -> Option<Self> {
        let (task, given) = matches.subcommand()?;
        let command = program.find_subcommand(task)?;
        let flag = |arg: &Arg| {
            let id = arg.get_id().as_str();
            Some((arg.get_long().unwrap_or(id).to_owned(), value(arg, given)?))
        };
        Some(Self { task: command.get_name().to_owned(), flags: command.get_arguments().filter_map(flag).collect() })
    }

    pub(crate) fn of_process() -> Option<&'static Self> {
        OF_PROCESS.get().map(|(asked, _)| asked)
    }

    /// In which flags two of them differ that change what is computed: the name, the value here and the value there.
    pub(crate) fn differences<'a>(&'a self, other: &'a Self) -> Vec<(&'a str, &'a Value, &'a Value)> {
        let mut names: Vec<&str> = self.flags.keys().chain(other.flags.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let of = |asked: &'a Self, name: &str| asked.flags.get(name).unwrap_or(&Value::Null);
        let both = names.into_iter().map(|name| (name, of(self, name), of(other, name)));
        both.filter(|(name, here, there)| !ASIDE.contains(name) && here != there).collect()
    }
}

/// A flag's value; `None` where it has none.
fn value(arg: &Arg, matches: &ArgMatches) -> Option<Value> {
    let id = arg.get_id().as_str();
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return matches.try_get_one::<bool>(id).ok()?.map(|on| json!(on));
    }
    let mut values = matches.try_get_raw(id).ok()??.map(|raw| of_text(&raw.to_string_lossy()));
    match arg.get_action() {
        ArgAction::Append => Some(values.collect()),
        _ => values.next(),
    }
}

/// A number where the text is one, so that `0.001` and `1e-3` are the same.
fn of_text(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Number(number)) => Value::Number(number),
        _ => json!(text),
    }
}
