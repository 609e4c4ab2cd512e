use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gfn::{Error, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

use super::Sample;
use super::schema::{self, failed};

/// The samples of a record that are wanted; all of them by default.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Filter {
    /// Those of one run ([`Run::id`]).
    pub run: Option<i64>,
    /// Those of these steps.
    pub steps: Option<RangeInclusive<usize>>,
    /// Each key once: its largest log-reward, the earliest of these.
    pub distinct: bool,
    /// So many of the largest log-rewards, in falling order; without it samples come in the order in which they were drawn.
    pub best: Option<usize>,
}

impl Filter {
    fn query(&self, columns: &[String]) -> String {
        let scores: String = columns.iter().map(|name| format!(", \"{name}\"")).collect();
        let names = format!("run, step, place, text, key, log_reward{scores}");
        let mut wanted = String::from("1");
        // Writing to a string can't fail.
        if let Some(run) = self.run {
            let _ = write!(wanted, " AND run = {run}");
        }
        if let Some(steps) = &self.steps {
            let _ = write!(wanted, " AND step BETWEEN {} AND {}", steps.start(), steps.end());
        }
        // No score begins with an underscore.
        let mut query = if self.distinct {
            format!(
                "SELECT {names} FROM (SELECT {names}, row_number() OVER (PARTITION BY key ORDER BY log_reward DESC, run, step, place) AS _nth
                 FROM samples WHERE {wanted}) WHERE _nth = 1"
            )
        } else {
            format!("SELECT {names} FROM samples WHERE {wanted}")
        };
        query += match self.best {
            None => " ORDER BY run, step, place",
            Some(_) => " ORDER BY log_reward DESC, run, step, place",
        };
        if let Some(best) = self.best {
            let _ = write!(query, " LIMIT {}", best.min(i64::MAX as usize));
        }
        query
    }
}

/// A sample, and where it was drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordedSample {
    /// The run ([`Run::id`]).
    pub run: i64,
    /// The training step, from 1.
    pub step: usize,
    /// The place among the step's samples, from 0.
    pub place: usize,
    /// The object.
    pub sample: Sample,
}

/// One run of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Its number in the file, from 1.
    pub id: i64,
    /// By which it is known wherever it goes on.
    pub token: String,
    /// When it began: `YYYY-MM-DD HH:MM:SS`, UTC.
    pub started: String,
    /// Its last recorded step; `None` where there is none.
    pub last_step: Option<usize>,
    /// The number of its samples.
    pub samples: usize,
}

/// A record that is read, also while it is written. An example is at [`RecordWriter`](super::RecordWriter).
#[derive(Debug)]
pub struct RecordReader {
    connection: Connection,
    path: PathBuf,
    columns: Vec<String>,
}

impl RecordReader {
    /// Opens a record.
    ///
    /// Neither the file nor its folder needs to be writable, once its run has ended: where SQLite can't make the files that it wants beside
    /// one in WAL mode, and there is no `-wal` with more rows (none at all, or an empty one), the file is read as it stands.
    ///
    /// # Errors
    /// [`Error::File`] for a file that isn't there, is something else, or of another version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let io = failed(path);
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(&io)?;
        connection.busy_timeout(Duration::from_secs(10)).map_err(&io)?;
        match connection.query_row("PRAGMA schema_version", [], |_| Ok(())) {
            Err(error) if lacks_permission(&error) && !has_wal(path) => Self::open_as_it_stands(path),
            _ => Self::new(connection, path),
        }
    }

    /// Opens a file that nobody writes to, in whatever mode it is.
    fn open_as_it_stands(path: &Path) -> Result<Self> {
        let io = failed(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        Self::new(Connection::open_with_flags(immutable(path), flags).map_err(&io)?, path)
    }

    fn new(connection: Connection, path: &Path) -> Result<Self> {
        schema::check(&connection, path)?;
        let columns = schema::columns(&connection, path)?;
        Ok(Self { connection, path: path.to_owned(), columns })
    }

    /// The names of the scores.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The runs, the earliest first.
    ///
    /// # Errors
    /// [`Error::File`] where it can't be read.
    pub fn runs(&self) -> Result<Vec<Run>> {
        // Scores may have the names of the other table's columns.
        let query = "SELECT runs.id, runs.token, runs.started, max(samples.step), count(samples.step)
                     FROM runs LEFT JOIN samples ON samples.run = runs.id GROUP BY runs.id ORDER BY runs.id";
        let read = |row: &Row<'_>| {
            Ok(Run {
                id: row.get(0)?,
                token: row.get(1)?,
                started: row.get(2)?,
                last_step: row.get::<_, Option<i64>>(3)?.map(|step| step as usize),
                samples: row.get::<_, i64>(4)? as usize,
            })
        };
        let all = || self.connection.prepare(query)?.query_map([], read)?.collect::<rusqlite::Result<_>>();
        all().map_err(failed(&self.path))
    }

    /// Calls `f` with each sample that the filter wants, one in memory at a time; how many there were.
    ///
    /// # Errors
    /// [`Error::File`] where it can't be read; those of `f`, which end it.
    pub fn visit(&self, filter: &Filter, mut f: impl FnMut(RecordedSample) -> Result<()>) -> Result<usize> {
        let io = failed(&self.path);
        let mut statement = self.connection.prepare(&filter.query(&self.columns)).map_err(&io)?;
        let mut rows = statement.query([]).map_err(&io)?;
        let mut n = 0;
        while let Some(row) = rows.next().map_err(&io)? {
            f(self.read(row).map_err(&io)?)?;
            n += 1;
        }
        Ok(n)
    }

    /// All samples that the filter wants.
    ///
    /// # Errors
    /// [`Error::File`] where it can't be read.
    pub fn samples(&self, filter: &Filter) -> Result<Vec<RecordedSample>> {
        let mut out = Vec::new();
        self.visit(filter, |sample| {
            out.push(sample);
            Ok(())
        })?;
        Ok(out)
    }

    /// Looks at the whole file (SQLite's `integrity_check`).
    ///
    /// # Errors
    /// [`Error::File`] with the first thing that is wrong.
    pub fn check(&self) -> Result<()> {
        let word: String =
            self.connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(failed(&self.path))?;
        match word.as_str() {
            "ok" => Ok(()),
            _ => Err(Error::file(
                self.path.clone(),
                word,
                "restore it from a copy, or save what `sqlite3 FILE .recover` finds",
            )),
        }
    }

    fn read(&self, row: &Row<'_>) -> rusqlite::Result<RecordedSample> {
        let score = |k: usize| row.get::<_, Option<f64>>(6 + k).map(|score| score.unwrap_or(f64::NAN));
        Ok(RecordedSample {
            run: row.get(0)?,
            step: row.get::<_, i64>(1)? as usize,
            place: row.get::<_, i64>(2)? as usize,
            sample: Sample {
                text: row.get(3)?,
                key: row.get(4)?,
                log_reward: row.get(5)?,
                scores: (0..self.columns.len()).map(score).collect::<rusqlite::Result<_>>()?,
            },
        })
    }
}

/// `true` if SQLite couldn't make or write a file.
fn lacks_permission(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied))
}

/// `true` if rows may wait in a `-wal` beside the file; an empty one is as good as none.
fn has_wal(path: &Path) -> bool {
    std::fs::metadata(beside(path, "-wal")).is_ok_and(|wal| wal.len() > 0)
}

/// The file of SQLite's beside a database.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The address under which SQLite takes a file for one that nobody writes to.
fn immutable(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let escaped = absolute.as_os_str().as_encoded_bytes().iter().map(|&byte| match byte {
        b'/' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    format!("file:{}?immutable=1", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordWriter;

    /// What is left where a folder can't be written to: a file in WAL mode, without the files beside it.
    #[test]
    fn a_file_in_wal_mode_is_read_as_it_stands() {
        let folder = std::env::temp_dir().join(format!("gfn record? 100%#{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (written, copy) = (folder.join("run.sqlite"), folder.join("a copy?mode=rw.sqlite"));
        let mut writer = RecordWriter::new_run(&written, &[]).unwrap();
        let sample = Sample { text: "A".into(), key: vec![1], log_reward: 0.5, scores: Vec::new() };
        writer.append(1, std::slice::from_ref(&sample)).unwrap();
        let log = Connection::open(&written).unwrap();
        log.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        std::fs::copy(&written, &copy).unwrap();
        // Bytes 18 and 19 of the header are 2 in WAL mode.
        assert_eq!(std::fs::read(&copy).unwrap()[18..20], [2, 2]);
        let reader = RecordReader::open_as_it_stands(&copy).unwrap();
        assert_eq!(reader.samples(&Filter::default()).unwrap()[0].sample, sample);
        reader.check().unwrap();
        assert!(!beside(&copy, "-wal").exists() && !beside(&copy, "-shm").exists());
        drop((reader, log, writer));
        // A run that has ended leaves another mode.
        assert_eq!(std::fs::read(&written).unwrap()[18..20], [1, 1]);
        assert!(!beside(&written, "-wal").exists() && !beside(&written, "-shm").exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
