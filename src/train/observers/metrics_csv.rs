//! A table of metrics with one row per step.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::io::replace::replace_bytes;
use crate::train::TrainEnv;
use crate::train::{Observer, Record, Trainer};
use crate::{Error, Result};

/// An observer that writes one row per step of a CSV file, which spreadsheets and data frames read. Add it last, so that
/// it sees what other observers measure.
///
/// The first line names the columns: `step`, then the tags of [`TensorBoard`](super::TensorBoard), then a column for each
/// metric. A metric that is measured at some steps only has empty cells at the others. One that wasn't measured before
/// gets a column behind all others, so that columns never move; the file is replaced as a whole then. A number that isn't
/// finite is `NaN`, `inf` or `-inf`. Each row is flushed to the system at once, so that a killed run leaves all its rows.
///
/// A resumed run continues the file: rows of steps after the checkpoint, which it makes again, are removed, and so is an
/// incomplete last row. A run from step 0 starts a new file. A file that isn't such a table is refused.
///
/// ```
/// use gfn::{objective::LogPartitionVariance, policy::UniformPolicy, testing::{Chain, Positions}, Rng};
/// use gfn::train::{Fit, Metrics, MetricsCsv, Trainer, TrainerConfig, Validation};
/// let reward = |s: &Positions, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> { Ok(vec![0.0; s.0.len()]) };
/// let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
/// let mut trainer =
///     Trainer::new(Chain::new(4), reward, UniformPolicy, LogPartitionVariance, config, Rng::seeded(0))?;
/// let path = std::env::temp_dir().join(format!("gfn-metrics-{}.csv", std::process::id()));
/// let mut validation = Validation::every(2, |_: &Trainer<_>| Ok(Metrics::from([("tv".to_owned(), 0.5)])))?;
/// let mut table = MetricsCsv::new(&path);
/// Fit::new(3).observe(&mut validation).observe(&mut table).run(&mut trainer)?;
/// let text = std::fs::read_to_string(&path).unwrap_or_default();
/// let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
/// assert_eq!((rows[0][0], rows[0].last()), ("step", Some(&"tv")));
/// assert_eq!((rows[1].last(), rows[2].last()), (Some(&""), Some(&"0.5")));
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct MetricsCsv {
    path: PathBuf,
    columns: Vec<String>,
    file: Option<File>,
}

impl MetricsCsv {
    /// A file at this path; its folder must exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), columns: Vec::new(), file: None }
    }

    fn start_at(&mut self, done: usize) -> Result<()> {
        let own = own_columns();
        let (columns, rows) = match fs::metadata(&self.path) {
            // What isn't a file, a pipe for one, is only written to: there is nothing to read again.
            Ok(there) if there.is_file() => rows_until(&self.path, &own, done)?,
            _ => (own.clone(), String::new()),
        };
        // A new run has no metric yet.
        self.columns = if rows.is_empty() { own } else { columns };
        self.rewrite(&rows)
    }

    /// Puts the header and these rows in place of what is there.
    fn rewrite(&mut self, rows: &str) -> Result<()> {
        let text = header(&self.columns) + rows;
        let io = |source| Error::io(&self.path, source);
        if fs::metadata(&self.path).is_ok_and(|there| !there.is_file()) {
            let mut out = OpenOptions::new().write(true).open(&self.path).map_err(io)?;
            out.write_all(text.as_bytes()).map_err(io)?;
            self.file = Some(out);
            return Ok(());
        }
        replace_bytes(&self.path, text.as_bytes())?;
        self.file = Some(OpenOptions::new().append(true).open(&self.path).map_err(io)?);
        Ok(())
    }

    /// Adds columns for the metrics that have none, with empty cells in all rows.
    fn widen(&mut self, record: &Record) -> Result<()> {
        let new: Vec<String> = record.metrics.keys().filter(|name| !self.columns.contains(name)).cloned().collect();
        if new.is_empty() {
            return Ok(());
        }
        if !self.path.is_file() {
            return Err(Error::file(
                &self.path,
                format!("there is no way back to its first line, which must name {new:?}"),
                "give a path where a file can be: a metric may be measured for the first time after some rows",
            ));
        }
        let (_, rows) = rows_until(&self.path, &own_columns(), record.step)?;
        let cells = ",".repeat(new.len());
        let rows: String = rows.lines().map(|row| format!("{row}{cells}\n")).collect();
        self.columns.extend(new);
        self.rewrite(&rows)
    }
}

impl<E: TrainEnv> Observer<E> for MetricsCsv {
    fn name(&self) -> &str {
        "metrics_csv"
    }

    fn start(&mut self, trainer: &Trainer<E>, _state: Option<&Value>) -> Result<()> {
        self.start_at(trainer.steps_done())
    }

    fn after_step(&mut self, _trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        self.widen(record)?;
        let row = row(&self.columns, record);
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write_all(row.as_bytes()));
        written.map_err(|source| Error::io(&self.path, source))?;
        Ok(ControlFlow::Continue(()))
    }

    /// Flushes the file to disk, because a checkpoint must not outlive the rows before it.
    fn save(&mut self) -> Result<Value> {
        let synced = self.file.as_ref().filter(|_| self.path.is_file()).map_or(Ok(()), File::sync_data);
        synced.map_err(|source| Error::io(&self.path, source))?;
        Ok(Value::Null)
    }
}

/// The columns of a run without metrics.
fn own_columns() -> Vec<String> {
    let figures = Record::bare();
    let names = figures.figures().into_iter().map(|(name, _)| name.to_owned());
    std::iter::once("step".to_owned()).chain(names).collect()
}

fn header(columns: &[String]) -> String {
    columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",") + "\n"
}

/// A name as RFC 4180 writes it: in quotation marks if it contains what separates cells and rows.
fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n', '\r']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_owned() }
}

fn row(columns: &[String], record: &Record) -> String {
    let figures = record.figures();
    let cells = columns[1..].iter().map(|column| {
        let figure = figures.iter().find(|(name, _)| name == column);
        figure.map_or_else(String::new, |(_, value)| number(*value))
    });
    std::iter::once(record.step.to_string()).chain(cells).collect::<Vec<_>>().join(",") + "\n"
}

/// The shortest text that is read back as the same number.
fn number(value: f64) -> String {
    // As in lines of JSON, with an exponent where that is shorter; whole numbers without a point.
    let plain = !value.is_finite() || value.fract() == 0.0 && value.abs() < 1e15;
    if plain { format!("{value}") } else { format!("{value:?}") }
}

/// The columns of a file, and its rows up to step `done`.
fn rows_until(path: &Path, own: &[String], done: usize) -> Result<(Vec<String>, String)> {
    let foreign = |problem: String| {
        Error::file(path, problem, "give a new file, or one that a run wrote its table of metrics to")
    };
    let bytes = fs::read(path).map_err(|source| Error::io(path, source))?;
    let text = String::from_utf8(bytes).map_err(|_| foreign("it isn't text".into()))?;
    let Some((columns, rest)) = first_record(&text) else {
        // Nothing, or a first line that a killed run didn't finish.
        return if header(own).starts_with(&text) {
            Ok((own.to_vec(), String::new()))
        } else {
            Err(foreign("it has no line of names".into()))
        };
    };
    if !columns.starts_with(own) {
        return Err(foreign(format!("its columns begin with {:?}, not with those of metrics", columns[0])));
    }
    let mut rows = String::new();
    // Rows are numbers: they contain no quotation marks. What isn't ended is an incomplete last row.
    for (k, line) in rest.split_inclusive('\n').enumerate() {
        let Some(row) = line.strip_suffix('\n') else { break };
        let step = row.split(',').next().and_then(|step| step.parse::<usize>().ok());
        let Some(step) = step.filter(|_| row.split(',').count() == columns.len()) else {
            return Err(foreign(format!("row {} isn't a row of metrics", k + 2)));
        };
        if step > done {
            break;
        }
        rows += line;
    }
    Ok((columns, rows))
}

/// The cells of the first record, which may have line breaks between quotation marks, and what follows; `None` if it has
/// no end.
fn first_record(text: &str) -> Option<(Vec<String>, &str)> {
    let (mut cells, mut cell, mut inside) = (Vec::new(), String::new(), false);
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' if inside && letters.next_if(|(_, next)| *next == '"').is_some() => cell.push('"'),
            '"' => inside = !inside,
            ',' if !inside => cells.push(std::mem::take(&mut cell)),
            '\n' if !inside => {
                cells.push(cell);
                return Some((cells, &text[at + 1..]));
            }
            letter => cell.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::result::Result;

    use super::*;
    use crate::io::replace::tests::folder;
    use crate::train::StepStats;

    /// A step with these metrics.
    fn record(step: usize, metrics: &[(&str, f64)]) -> Record {
        let stats = StepStats { loss: step as f64 / 3.0, log_z: f64::NAN, ..StepStats::default() };
        let mut record = Record::new(step, 10 * step as u64, stats, false);
        record.metrics.extend(metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        record
    }

    fn write(table: &mut MetricsCsv, record: &Record) {
        table.widen(record).unwrap();
        let row = row(&table.columns, record);
        table.file.as_mut().unwrap().write_all(row.as_bytes()).unwrap();
    }

    /// What the `csv` crate reads: a map of names to cells per row.
    fn read(path: &Path) -> Vec<BTreeMap<String, String>> {
        csv::Reader::from_path(path).unwrap().deserialize().map(Result::unwrap).collect()
    }

    /// Names that would take a file apart if they weren't quoted.
    const NAMES: [&str; 4] = ["tv, exact", "the \"true\" one", "two\nlines", "p(x) é"];

    #[test]
    fn what_is_written_is_what_another_reader_reads() {
        let folder = folder("csv");
        let mut table = MetricsCsv::new(folder.join("metrics.csv"));
        table.start_at(0).unwrap();
        let values = [0.1 + 0.2, f64::INFINITY, -1e-300, 1e22];
        write(&mut table, &record(1, &[]));
        write(&mut table, &record(2, &[(NAMES[0], values[0]), (NAMES[1], values[1])]));
        write(&mut table, &record(3, &[(NAMES[2], values[2]), (NAMES[3], values[3])]));
        let rows = read(&table.path);
        assert_eq!(rows.iter().map(|row| row["step"].as_str()).collect::<Vec<_>>(), ["1", "2", "3"]);
        for (k, name) in NAMES.iter().enumerate() {
            let cells: Vec<&str> = rows.iter().map(|row| row[*name].as_str()).collect();
            let at = 1 + k / 2;
            assert_eq!(cells[at].parse::<f64>().unwrap().to_bits(), values[k].to_bits(), "{name}: {cells:?}");
            assert!((0..3).filter(|row| *row != at).all(|row| cells[row].is_empty()), "{name}: {cells:?}");
        }
        assert_eq!(rows[0]["loss"].parse::<f64>().unwrap(), 1.0 / 3.0);
        assert!(rows[0]["log_z"].parse::<f64>().unwrap().is_nan() && rows[2]["reward_calls"] == "30");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn columns_stay_where_they_are() {
        let folder = folder("csv-columns");
        let mut table = MetricsCsv::new(folder.join("metrics.csv"));
        table.start_at(0).unwrap();
        let columns = |path: &Path| csv::Reader::from_path(path).unwrap().headers().unwrap().clone();
        let before = columns(&table.path);
        write(&mut table, &record(1, &[("z", 1.0)]));
        write(&mut table, &record(2, &[("a", 1.0)]));
        let after = columns(&table.path);
        assert!(before.iter().eq(after.iter().take(before.len())));
        assert_eq!(after.iter().skip(before.len()).collect::<Vec<_>>(), ["z", "a"]);
        assert_eq!(own_columns()[..3], ["step", "reward_calls", "loss"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_resumed_run_goes_on_behind_its_own_row() {
        let folder = folder("csv-resumed");
        let path = folder.join("metrics.csv");
        let mut first = MetricsCsv::new(&path);
        first.start_at(0).unwrap();
        (1..=4).for_each(|step| write(&mut first, &record(step, &[(NAMES[2], 0.5)])));
        let whole = fs::read_to_string(&path).unwrap();
        for (done, kept) in [(1, 1), (3, 3), (9, 4)] {
            // Cut off in the middle of a row.
            fs::write(&path, format!("{whole}5,50,1.6")).unwrap();
            let mut again = MetricsCsv::new(&path);
            again.start_at(done).unwrap();
            write(&mut again, &record(done + 1, &[]));
            let steps: Vec<String> = read(&path).into_iter().map(|row| row["step"].clone()).collect();
            let expected = (1..=kept).chain([done + 1]).map(|step| step.to_string());
            assert!(steps.iter().cloned().eq(expected), "{steps:?}");
            assert!(read(&path)[0].contains_key(NAMES[2]));
        }
        // A run from the start has no metric yet; so has one whose header was cut off.
        for there in [whole.as_str(), "", "step,rew"] {
            fs::write(&path, there).unwrap();
            MetricsCsv::new(&path).start_at(0).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), header(&own_columns()));
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_no_table_of_metrics_is_refused_and_left_alone() {
        let folder = folder("csv-foreign");
        let path = folder.join("metrics.csv");
        let own = header(&own_columns());
        for (there, problem) in [
            ("a,b\n1,2\n".to_owned(), "its columns begin with \"a\""),
            ("my notes".to_owned(), "no line of names"),
            (format!("{own}one\n"), "row 2 isn't a row of metrics"),
            (format!("{own}1,2,3\n"), "row 2 isn't a row of metrics"),
        ] {
            fs::write(&path, &there).unwrap();
            let message = MetricsCsv::new(&path).start_at(5).unwrap_err().to_string();
            assert!(message.contains(problem) && message.contains("metrics.csv"), "{message}");
            assert_eq!(fs::read_to_string(&path).unwrap(), there, "untouched");
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(MetricsCsv::new(&path).start_at(0).unwrap_err().to_string().contains("isn't text"));
        let nowhere = folder.join("none/metrics.csv");
        assert!(matches!(MetricsCsv::new(nowhere).start_at(0), Err(Error::Io { .. })));
        assert!(matches!(MetricsCsv::new(&folder).start_at(0), Err(Error::Io { .. })));
        fs::remove_dir_all(folder).unwrap();
    }

    /// A device that is always full.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error() {
        let full = MetricsCsv::new("/dev/full").start_at(0);
        assert!(matches!(&full, Err(Error::Io { path, .. }) if path.ends_with("full")), "{full:?}");
        // A device takes rows, but a new column would need the first row again.
        let mut table = MetricsCsv::new("/dev/null");
        table.start_at(0).unwrap();
        table.widen(&record(1, &[])).unwrap();
        let message = table.widen(&record(1, &[("tv", 0.5)])).unwrap_err().to_string();
        assert!(message.contains("/dev/null") && message.contains("tv"), "{message}");
    }
}
