//! What the file looks like, and whether a file is one.

use std::path::Path;

use gfn::{Error, Result};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};

/// "gfnr".
const APPLICATION: i64 = 0x6766_6e72;
/// The version of the tables.
const VERSION: i64 = 1;
/// Columns of every record, before those of scores.
const COLUMNS: [&str; 6] = ["run", "step", "place", "text", "key", "log_reward"];

/// SQLite's word on a file, with what to do.
pub(super) fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> Error {
    move |error| {
        Error::file(
            path,
            &error,
            match error.sqlite_error_code() {
                Some(ErrorCode::NotADatabase) => "give a new file, or one that a run was recorded in",
                Some(ErrorCode::CannotOpen) => "check that its folder exists, and that it may be written to",
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                    "let the other program that writes to it end"
                }
                Some(ErrorCode::DatabaseCorrupt) => {
                    "restore it from a copy, or save what `sqlite3 FILE .recover` finds"
                }
                _ => "check the space on its disk, and that it may be read and written",
            },
        )
    }
}

fn foreign(path: &Path, problem: String, remedy: &'static str) -> Error {
    Error::file(path, problem, remedy)
}

/// `true` if nothing was ever written to it.
pub(super) fn is_empty(connection: &Connection, path: &Path) -> Result<bool> {
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).map_err(failed(path))?;
    let mark: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(failed(path))?;
    Ok(tables == 0 && mark == 0)
}

/// Refuses a file that is something else, or of another version.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<()> {
    let number = |pragma: &str| -> Result<i64> {
        connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).map_err(failed(path))
    };
    if number("application_id")? != APPLICATION {
        let problem = "a database, but not a record of training".to_owned();
        return Err(foreign(path, problem, "give a new file, or one that a run was recorded in"));
    }
    match number("user_version")? {
        VERSION => Ok(()),
        other => {
            let problem = format!("a record of version {other}, where {VERSION} was expected");
            Err(foreign(path, problem, "give a new file, or read it with the version of this library that wrote it"))
        }
    }
}

/// Makes the tables, all or none, unless another program did so just now.
pub(super) fn create(connection: &mut Connection, columns: &[String], path: &Path) -> Result<()> {
    let scores: String = columns.iter().map(|name| format!("\"{name}\" REAL, ")).collect();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed(path))?;
    if !is_empty(&transaction, path)? {
        return Ok(());
    }
    let tables = format!(
        "PRAGMA application_id = {APPLICATION};
         PRAGMA user_version = {VERSION};
         CREATE TABLE runs (id INTEGER PRIMARY KEY, token TEXT NOT NULL UNIQUE, started TEXT NOT NULL DEFAULT (datetime('now')));
         CREATE TABLE samples (run INTEGER NOT NULL REFERENCES runs (id), step INTEGER NOT NULL, place INTEGER NOT NULL,
             text TEXT NOT NULL, key BLOB NOT NULL, log_reward REAL NOT NULL, {scores}PRIMARY KEY (run, step, place)) WITHOUT ROWID;"
    );
    transaction.execute_batch(&tables).and_then(|()| transaction.commit()).map_err(failed(path))
}

/// The names of the scores in a file.
pub(super) fn columns(connection: &Connection, path: &Path) -> Result<Vec<String>> {
    let mut statement =
        connection.prepare("SELECT name FROM pragma_table_info('samples') ORDER BY cid").map_err(failed(path))?;
    let names = statement.query_map([], |row| row.get::<_, String>(0)).map_err(failed(path))?;
    let names: Vec<String> = names.collect::<rusqlite::Result<_>>().map_err(failed(path))?;
    Ok(names.into_iter().skip(COLUMNS.len()).collect())
}

/// Refuses names that can't be columns.
pub(super) fn check_names(names: &[String]) -> Result<()> {
    for (k, name) in names.iter().enumerate() {
        let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        let fine = plain && name.starts_with(|c: char| c.is_ascii_lowercase());
        if !fine || COLUMNS.contains(&name.as_str()) || names[..k].contains(name) {
            return Err(Error::config(
                "the name of a recorded score",
                format!("`{name}`"),
                "lower-case letters, digits and _, a letter first; each once, none of run, step, place, text, key, log_reward",
            ));
        }
    }
    Ok(())
}

/// Refuses a file whose scores are others.
pub(super) fn check_columns(connection: &Connection, columns: &[String], path: &Path) -> Result<()> {
    let theirs = self::columns(connection, path)?;
    if theirs == columns {
        Ok(())
    } else {
        Err(foreign(
            path,
            format!("a record of the scores {theirs:?}, where {columns:?} were to be recorded"),
            "give a new file, or record the same scores in the same order",
        ))
    }
}
