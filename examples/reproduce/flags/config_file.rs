//! Flags from a TOML file, which `--config` names. The file sets a task's flags by name. A flag on the
//! command line takes precedence over the same flag in the file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::ArgAction;
use clap::error::{Error, ErrorKind, Result};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use serde::de::DeserializeOwned;

/// Parses the arguments of a program. The first argument is the program's name. The second argument is a
/// task's name if the program has several tasks. A flag in the file that `--config` names is used unless the
/// command line sets it.
///
/// Each key of the file is the name of a flag, such as `log-z-lr = 0.1`. A key that isn't a flag's name is an
/// error. Values are read by the parser of the command line, so that each flag is declared only once.
pub(crate) fn matches(
    program: &Command,
    args: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<ArgMatches> {
    let mut args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let whole = signed(program);
    // The first pass only finds `--config` and the flags on the command line. The second pass reports errors
    // and handles requests for help, which the first pass ignores.
    let lenient = whole.clone().ignore_errors(true).mut_subcommands(|task| task.ignore_errors(true));
    let Ok(given) = lenient.try_get_matches_from(&args) else { return whole.try_get_matches_from(args) };
    let mut given = &given;
    let mut command = &whole;
    let mut first = 1;
    if let Some((task, flags)) = given.subcommand() {
        // A task's flags follow the task's name on the command line. The flags of the file are therefore
        // inserted after this name.
        (given, command, first) = (flags, command.find_subcommand(task).unwrap_or(command), 2);
    }
    let Ok(Some(path)) = given.try_get_one::<PathBuf>("config") else {
        return whole.try_get_matches_from(args);
    };
    let mut from_file: Vec<String> = Vec::new();
    for (key, setting) in read(path)? {
        let arg = find_flag(command, path, &key)?;
        if given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) {
            continue;
        }
        from_file.extend(to_arguments(&arg, &key, &setting).ok_or_else(|| {
            let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
            let expected = if is_switch { "true or false" } else { "a number or text" };
            Error::raw(ErrorKind::InvalidValue, format!("{}: `{key}` must be {expected}\n", path.display()))
        })?);
    }
    let path = path.display().to_string();
    args.splice(first..first, from_file.into_iter().map(OsString::from));
    whole.try_get_matches_from(args).map_err(|error| {
        if !error.use_stderr() {
            // This "error" is how clap returns the text of `--help` or `--version`.
            return error;
        }
        let text = error.render().to_string();
        let text = text.trim_start_matches("error: ").trim_end();
        Error::raw(error.kind(), format!("{text}\n\n(with the settings of {path})\n"))
    })
}

/// Lets the parser accept negative numbers as values. In `--steps -1`, -1 is then reported as an invalid
/// number instead of an unknown flag.
fn signed(program: &Command) -> Command {
    let sign =
        |arg: Arg| if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg };
    program.clone().mut_args(sign).mut_subcommands(|task| task.mut_args(sign))
}

fn read(path: &Path) -> Result<BTreeMap<String, toml::Value>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::raw(ErrorKind::Io, format!("{} can't be read: {error}; check the path\n", path.display()))
    })?;
    from_toml(&text)
        .map_err(|error| Error::raw(ErrorKind::InvalidValue, format!("{}: {error}", path.display())))
}

/// The largest number of brackets that may be open at once in a TOML text.
const MAX_DEPTH: usize = 100;

/// Reads a value from a TOML text, which may begin with a byte-order mark. The depth of nested brackets is
/// checked first, because toml_parser 1.1 overflows the stack on a text with many unclosed `{`.
pub(crate) fn from_toml<T: DeserializeOwned>(text: &str) -> std::result::Result<T, String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut depth = 0usize;
    let mut quote = None;
    let mut is_comment = false;
    for byte in text.bytes() {
        match byte {
            b'\n' => (quote, is_comment) = (None, false),
            _ if is_comment => {}
            b'"' | b'\'' if quote.is_none() => quote = Some(byte),
            _ if quote.is_some() => quote = quote.filter(|open| *open != byte),
            b'#' => is_comment = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} brackets are open at once: close them"));
        }
    }
    toml::from_str(text).map_err(|error| error.to_string())
}

/// Returns the flag of `command` whose name is `key`. The error names the file at `path`.
fn find_flag(command: &Command, path: &Path, key: &str) -> Result<Arg> {
    // A settings file can neither name another settings file nor request help.
    let settable = |arg: &&Arg| arg.get_long().is_some_and(|long| long != "config");
    if let Some(arg) = command.get_arguments().filter(settable).find(|arg| arg.get_long() == Some(key)) {
        return Ok(arg.clone());
    }
    let keys: Vec<&str> = command.get_arguments().filter(settable).filter_map(Arg::get_long).collect();
    let problem = format!("{}: unknown key `{key}`; the keys are {}\n", path.display(), keys.join(", "));
    Err(Error::raw(ErrorKind::UnknownArgument, problem))
}

/// Converts the value of a key in the file to arguments of the command line. Returns `None` if the flag
/// doesn't accept a value of this type.
fn to_arguments(arg: &Arg, key: &str, setting: &toml::Value) -> Option<Vec<String>> {
    let value = |setting: &toml::Value| match setting {
        toml::Value::Integer(value) => Some(format!("--{key}={value}")),
        toml::Value::Float(value) => Some(format!("--{key}={value}")),
        toml::Value::String(value) => Some(format!("--{key}={value}")),
        _ => None,
    };
    match (arg.get_action(), setting) {
        (ArgAction::SetTrue, setting) => {
            Some(if setting.as_bool()? { vec![format!("--{key}")] } else { Vec::new() })
        }
        (ArgAction::Append, toml::Value::Array(values)) => values.iter().map(value).collect(),
        _ => value(setting).map(|value| vec![value]),
    }
}
