//! The task that this process runs, and the values of its flags.

use std::cell::Cell;
use std::sync::OnceLock;

use clap::builder::ArgAction;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use gfn::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A task and the values of its flags. A value comes from the command line, from a `--config` file, or is the
/// default.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct TaskFlags {
    pub(crate) task: String,
    pub(crate) flags: Map<String, Value>,
}

/// The task and flags of a run.
pub(crate) struct ProcessFlags {
    pub(crate) flags: TaskFlags,
    /// The names of the flags to which the command line gives a value other than 0 or false.
    explicit: Vec<String>,
}

/// The task and flags of this process.
static OF_PROCESS: OnceLock<ProcessFlags> = OnceLock::new();

thread_local! {
    /// The task and flags of this thread, if they differ from those of the process.
    static OF_THREAD: Cell<Option<&'static ProcessFlags>> = const { Cell::new(None) };
}

/// Returns the task and flags of this thread: those that were set for it, otherwise those of the process.
fn current() -> Option<&'static ProcessFlags> {
    OF_THREAD.get().or_else(|| OF_PROCESS.get())
}

/// Returns `true` if this thread trains one of several seeds.
pub(crate) fn is_one_of_several() -> bool {
    OF_THREAD.get().is_some()
}

/// Sets the task and flags that the functions of this module return on this thread.
pub(crate) fn set_for_thread(flags: &'static ProcessFlags) {
    OF_THREAD.set(Some(flags));
}

/// The flags that don't change the results of a run. These flags only choose which files a run reads or
/// writes, and what a run prints.
const WITHOUT_EFFECT: [&str; 10] = [
    "run",
    "out",
    "save",
    "metrics",
    "resume",
    "checkpoint-every",
    "tensorboard",
    "config",
    "json",
    "per-graph",
];

/// Stores the task and flags of this process, which the other functions of this module then return.
pub(crate) fn remember(program: &Command, matches: &ArgMatches) {
    if let Some(flags) = ProcessFlags::from_matches(program, matches) {
        // A process has only one command line, so a second call has no effect.
        let _ = OF_PROCESS.set(flags);
    }
}

impl ProcessFlags {
    /// Reads the task and its flags from parsed arguments. Returns `None` if the arguments name no task.
    pub(crate) fn from_matches(program: &Command, matches: &ArgMatches) -> Option<Self> {
        let all = TaskFlags::from_matches(program, matches)?;
        let (_, flags) = matches.subcommand()?;
        let mut explicit = Vec::new();
        for (name, value) in &all.flags {
            let id = name.replace('-', "_");
            let is_flag = flags.try_contains_id(&id).unwrap_or(false);
            let is_off = [json!(0), json!(0.0), json!(false)].contains(value);
            if is_flag && flags.value_source(&id) == Some(ValueSource::CommandLine) && !is_off {
                explicit.push(format!("--{name}"));
            }
        }
        Some(Self { flags: all, explicit })
    }
}

/// Returns an error if the command line gives one of `flags` a value other than 0 or false. Tasks call this
/// function with flags that have no effect in them.
pub(crate) fn refuse(flags: &[&'static str], expected: &'static str) -> Result<()> {
    match flags.iter().find(|flag| is_given(flag)) {
        Some(flag) => Err(Error::config(flag, "given", expected)),
        None => Ok(()),
    }
}

/// Returns `true` if the command line gives a flag a value other than 0 or false.
pub(crate) fn is_given(flag: &str) -> bool {
    current().is_some_and(|flags| flags.explicit.iter().any(|name| name == flag))
}

/// Returns the name of this process's task with underscores, as it is written to results and checkpoints.
pub(crate) fn example() -> String {
    current().map(|all| all.flags.task.replace('-', "_")).unwrap_or_default()
}

/// Returns the name of this process's task, followed by the given flags that change results. This text is the
/// title of pictures.
pub(crate) fn command() -> String {
    let Some(ProcessFlags { flags: all, explicit }) = current() else { return String::new() };
    let mut words = vec![all.task.clone()];
    for flag in explicit {
        let name = flag.trim_start_matches("--");
        match &all.flags[name] {
            // Each picture is of one seed.
            _ if name == "seeds" || WITHOUT_EFFECT.contains(&name) => {}
            Value::Bool(_) => words.push(flag.clone()),
            Value::String(text) => words.push(format!("{flag} {text}")),
            value => words.push(format!("{flag} {value}")),
        }
    }
    words.join(" ")
}

impl TaskFlags {
    /// Reads the task and its flags from parsed arguments. Returns `None` if the arguments name no task.
    pub(crate) fn from_matches(program: &Command, matches: &ArgMatches) -> Option<Self> {
        let (task, given) = matches.subcommand()?;
        let command = program.find_subcommand(task)?;
        let flag = |arg: &Arg| {
            let id = arg.get_id().as_str();
            Some((arg.get_long().unwrap_or(id).to_owned(), value(arg, given)?))
        };
        Some(Self {
            task: command.get_name().to_owned(),
            flags: command.get_arguments().filter_map(flag).collect(),
        })
    }

    /// Returns the task and flags of this thread's run.
    pub(crate) fn of_process() -> Option<&'static Self> {
        current().map(|all| &all.flags)
    }

    /// Returns the same flags, except that the flag `name` has this value.
    pub(crate) fn with(&self, name: &str, value: Value) -> Self {
        let mut flags = self.clone();
        flags.flags.insert(name.to_owned(), value);
        flags
    }

    /// Returns the number of seeds, `--seeds`.
    pub(crate) fn n_seeds(&self) -> u64 {
        self.flags.get("seeds").and_then(Value::as_u64).unwrap_or(1)
    }

    /// Returns the flags that change results and whose values differ. Each entry is a name, the value in
    /// `self` and the value in `other`.
    pub(crate) fn differences<'a>(&'a self, other: &'a Self) -> Vec<(&'a str, &'a Value, &'a Value)> {
        let mut names: Vec<&str> = self.flags.keys().chain(other.flags.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let value = |flags: &'a Self, name: &str| flags.flags.get(name).unwrap_or(&Value::Null);
        let both = names.into_iter().map(|name| (name, value(self, name), value(other, name)));
        both.filter(|(name, here, there)| !WITHOUT_EFFECT.contains(name) && here != there).collect()
    }
}

/// Returns the value of a flag; `None` if the flag has no value. A text that is a number becomes a number, so
/// that `0.001` and `1e-3` are equal.
fn value(arg: &Arg, matches: &ArgMatches) -> Option<Value> {
    let id = arg.get_id().as_str();
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return matches.try_get_one::<bool>(id).ok()?.map(|on| json!(on));
    }
    let mut values = matches.try_get_raw(id).ok()??.map(|raw| {
        let text = raw.to_string_lossy();
        serde_json::from_str(&text).ok().filter(Value::is_number).unwrap_or_else(|| json!(text))
    });
    match arg.get_action() {
        ArgAction::Append => Some(values.collect()),
        _ => values.next(),
    }
}
