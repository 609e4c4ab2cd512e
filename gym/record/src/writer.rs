use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gfn::{Error, Result};
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::schema::{self, failed};

/// An object that was sampled.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// The text that people write it as: a SMILES, a graph6 line, a string.
    pub text: String,
    /// The key that makes it the same object as another, whatever the text.
    pub key: Vec<u8>,
    /// Its log-reward, natural; minus infinity for a reward of zero.
    pub log_reward: f64,
    /// Its scores, one per column; NaN for one that it doesn't have.
    pub scores: Vec<f64>,
}

/// A record that is written: one run of a file, step by step. [Its format](super) is documented with the module.
///
/// ```
/// use gfn_record::{Filter, RecordReader, RecordWriter, Sample};
/// # let folder = std::env::temp_dir().join(format!("gfn-record-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).ok();
/// let path = folder.join("run.sqlite");
/// let mut writer = RecordWriter::new_run(&path, &["weight"])?;
/// let sample = |text: &str, log_reward, weight| {
///     Sample { text: text.into(), key: text.into(), log_reward, scores: vec![weight] }
/// };
/// writer.append(1, &[sample("CCO", 0.5, 46.07), sample("CO", -1.0, 32.04)])?;
/// writer.append(2, &[sample("CCO", 0.5, 46.07)])?;
/// let reader = RecordReader::open(&path)?;
/// let best = reader.samples(&Filter { distinct: true, best: Some(1), ..Filter::default() })?;
/// assert_eq!((best[0].sample.text.as_str(), best[0].step), ("CCO", 1));
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct RecordWriter {
    connection: Connection,
    path: PathBuf,
    columns: Vec<String>,
    insert: String,
    run: i64,
    token: String,
}

/// How long a transaction waits for another program's.
const PATIENCE: Duration = Duration::from_secs(10);

/// Readers don't wait, and a step costs no wait for the disk.
fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    let began = Instant::now();
    loop {
        let set = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
        // Of two that change a new file's mode at once, SQLite refuses one without letting it wait.
        match set.as_ref().err().and_then(rusqlite::Error::sqlite_error_code) {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) if began.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            _ => return set,
        }
    }
}

impl RecordWriter {
    /// A new run in a file, which is made if there is none; `columns` are the names of the scores.
    ///
    /// # Errors
    /// [`Error::File`] for a file that is something else, of another version, of other scores, or that can't be written;
    /// [`Error::Config`] for names that can't be columns.
    pub fn new_run(path: impl AsRef<Path>, columns: &[&str]) -> Result<Self> {
        let path = path.as_ref();
        let (mut writer, io) = (Self::open(path, columns)?, failed(path));
        // A name for good: ids are those of one file.
        let token =
            writer.connection.query_row("SELECT lower(hex(randomblob(16)))", [], |row| row.get(0)).map_err(&io)?;
        writer.connection.execute("INSERT INTO runs (token) VALUES (?1)", [&token]).map_err(&io)?;
        writer.run = writer.connection.last_insert_rowid();
        writer.token = token;
        Ok(writer)
    }

    /// Goes on with the run of this [`token`](Self::token) behind a step: what was recorded of later ones is dropped. A new run where
    /// the file doesn't have it.
    ///
    /// # Errors
    /// As for [`new_run`](Self::new_run).
    pub fn go_on(path: impl AsRef<Path>, columns: &[&str], token: &str, step: usize) -> Result<Self> {
        let path = path.as_ref();
        let (mut writer, io) = (Self::open(path, columns)?, failed(path));
        let found = writer.connection.query_row("SELECT id FROM runs WHERE token = ?1", [token], |row| row.get(0));
        let Some(run) = found.optional().map_err(&io)? else { return Self::new_run(path, columns) };
        let later = "DELETE FROM samples WHERE run = ?1 AND step > ?2";
        writer.connection.execute(later, [run, step as i64]).map_err(&io)?;
        (writer.run, writer.token) = (run, token.to_owned());
        Ok(writer)
    }

    fn open(path: &Path, columns: &[&str]) -> Result<Self> {
        let columns: Vec<String> = columns.iter().map(|&name| name.to_owned()).collect();
        schema::check_names(&columns)?;
        let io = failed(path);
        let mut connection = Connection::open(path).map_err(&io)?;
        connection.busy_timeout(PATIENCE).map_err(&io)?;
        if schema::is_empty(&connection, path)? {
            schema::create(&mut connection, &columns, path)?;
        }
        schema::check(&connection, path)?;
        schema::check_columns(&connection, &columns, path)?;
        use_wal(&connection).map_err(&io)?;
        connection.execute_batch("PRAGMA synchronous = NORMAL").map_err(&io)?;
        let names: String = columns.iter().map(|name| format!(", \"{name}\"")).collect();
        let values: String = (0..columns.len()).map(|k| format!(", ?{}", 7 + k)).collect();
        let insert = format!(
            "INSERT INTO samples (run, step, place, text, key, log_reward{names}) VALUES (?1, ?2, ?3, ?4, ?5, ?6{values})"
        );
        Ok(Self { connection, path: path.to_owned(), columns, insert, run: 0, token: String::new() })
    }

    /// By which the run is found again: for its checkpoint.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Records what a step sampled, in one transaction.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of scores than columns, [`Error::NonFinite`] for a log-reward that is NaN or plus infinity,
    /// [`Error::Contract`] for a step that is recorded already, [`Error::File`] where it can't be written. Nothing is recorded then.
    pub fn append(&mut self, step: usize, samples: &[Sample]) -> Result<()> {
        for (row, sample) in samples.iter().enumerate() {
            if sample.scores.len() != self.columns.len() {
                return Err(Error::shape(
                    format!("the recorded scores of {}", sample.text),
                    [self.columns.len() as i64],
                    [sample.scores.len() as i64],
                    "give a number for each named score, NaN where there is none",
                ));
            }
            if sample.log_reward.is_nan() || sample.log_reward == f64::INFINITY {
                return Err(Error::non_finite(
                    "the log-reward of an object to be recorded",
                    row,
                    sample.log_reward,
                    "record what has a reward",
                ));
            }
        }
        let (run, step) = (self.run, step as i64);
        let write = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            let mut statement = transaction.prepare(&self.insert)?;
            for (place, sample) in samples.iter().enumerate() {
                for (k, number) in [run, step, place as i64].into_iter().enumerate() {
                    statement.raw_bind_parameter(1 + k, number)?;
                }
                statement.raw_bind_parameter(4, &sample.text)?;
                statement.raw_bind_parameter(5, &sample.key)?;
                statement.raw_bind_parameter(6, sample.log_reward)?;
                for (k, score) in sample.scores.iter().enumerate() {
                    // SQLite has no NaN.
                    statement.raw_bind_parameter(7 + k, (!score.is_nan()).then_some(score))?;
                }
                statement.raw_execute()?;
            }
            drop(statement);
            transaction.commit()
        };
        write(&mut self.connection).map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation) => Error::contract(
                "each step of a run is recorded once",
                format!("step {step} is in {} already: resume with `RecordWriter::go_on`", self.path.display()),
            ),
            _ => failed(&self.path)(error),
        })
    }

    /// Waits until all that was recorded is on the disk, for what must not outlive it: a checkpoint. Whoever reads meanwhile is in
    /// nobody's way.
    ///
    /// # Errors
    /// [`Error::File`] where it can't be written.
    pub fn sync(&self) -> Result<()> {
        let io = failed(&self.path);
        // A commit that waits for the disk takes all before it along: unlike a checkpoint of SQLite's, whatever others read.
        self.connection.execute_batch("PRAGMA synchronous = FULL").map_err(&io)?;
        let written = self.connection.execute("UPDATE runs SET token = token WHERE id = ?1", [self.run]);
        self.connection.execute_batch("PRAGMA synchronous = NORMAL").map_err(&io)?;
        written.map(|_| ()).map_err(io)
    }
}

impl Drop for RecordWriter {
    /// Leaves a file that can be read without writing beside it, unless somebody else has it open: they do so then, or readers can
    /// do without ([`RecordReader::open`](super::RecordReader::open)).
    fn drop(&mut self) {
        let _ = self.connection.busy_timeout(Duration::ZERO);
        let _ = self.connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()));
    }
}
