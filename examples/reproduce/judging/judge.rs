//! Two tasks for programs that sample a known distribution. One task writes the exact distribution as a
//! table. The other task compares a program's samples with the distribution.

use std::fmt::Write;

use gfn_judge::{Interval, Judgement, Missing};

use super::known_task::{KnownTask, TaskArgs, Visit};
use crate::prelude::*;

/// Write the exact distribution of a task as a table of objects, probabilities and log-rewards
#[derive(Args)]
pub(crate) struct Truth {
    #[command(flatten)]
    task: TaskArgs,
    /// CSV file to which the table is written
    #[arg(long)]
    out: PathBuf,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

impl Task for Truth {
    fn run(&self) -> Result<()> {
        try_file(&self.out)?;
        self.task.visit(self)
    }
}

impl Visit for &Truth {
    fn visit<E: EnumerableEnv>(self, known: KnownTask<E>) -> Result<()> {
        let listed = known.list()?;
        let out = &self.out;
        let wrong = |error: csv::Error| Error::file(out, error, "give a path of a file that can be written");
        let mut table = csv::Writer::from_path(out).map_err(wrong)?;
        table.write_record(["object", "probability", "log_reward"]).map_err(wrong)?;
        let probs = listed.object_probs(&listed.target.probs);
        let mut objects = 0;
        for (&state, p) in listed.first.iter().zip(&probs).filter(|(state, _)| listed.graph.can_end(**state))
        {
            let text = (known.write)(listed.graph.states(), state)?;
            let log_reward = listed.target.log_rewards[state];
            table.write_record([text, format!("{p:e}"), log_reward.to_string()]).map_err(wrong)?;
            objects += 1;
        }
        table.flush().map_err(|source| Error::io(out, source))?;
        report_file(out);
        if self.json {
            print(json!({ "example": "truth", "task": self.task.name(), "objects": objects,
                "log_z": listed.target.log_z, "out": out }))?;
        }
        Ok(())
    }
}

/// Compare the samples of any program with the exact distribution of a task
#[derive(Args)]
pub(crate) struct Judge {
    #[command(flatten)]
    task: TaskArgs,
    /// File with the samples, in the text format of the task's objects
    file: PathBuf,
    /// HTML page to write, with the results as a table and a picture
    #[arg(long)]
    out: Option<PathBuf>,
    /// Seed of all random numbers: they choose the subsets of objects on which distributions are compared,
    /// and simulate the samples of a perfect sampler
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

impl Task for Judge {
    fn run(&self) -> Result<()> {
        self.out.as_deref().map_or(Ok(()), try_file)?;
        self.task.visit(self)
    }
}

impl Visit for &Judge {
    fn visit<E: EnumerableEnv>(self, known: KnownTask<E>) -> Result<()> {
        let listed = known.list()?;
        let (states, n_unreadable) = (known.read)(&self.file)?;
        if states.is_empty() && n_unreadable == 0 {
            return Err(Error::file(
                &self.file,
                "the file has no samples",
                "give a file with one sample per line",
            ));
        }
        let mut target = listed.object_probs(&listed.target.probs);
        // All samples that aren't objects of the task count as one additional object, whose target
        // probability is 0.
        let foreign = target.len();
        target.push(0.0);
        let object = |state: Option<usize>| {
            state
                .filter(|&state| listed.graph.can_end(state))
                .map_or(foreign, |state| listed.object_of[state])
        };
        let readable = listed.graph.indices(&known.env, &states).into_iter().map(object);
        let samples: Vec<usize> = readable.chain(std::iter::repeat_n(foreign, n_unreadable)).collect();
        let invalid = samples.iter().filter(|&&object| object == foreign).count();
        if invalid == samples.len() {
            let remedy = "give objects of the task in the format in which `reproduce truth` writes them";
            return Err(Error::file(&self.file, "no sample of the file is an object of the task", remedy));
        }
        let judged = Judgement::new(&target, &samples, &mut Rng::seeded(self.seed))?;
        let text = |object: &Missing| (known.write)(listed.graph.states(), listed.first[object.object]);
        let missing: Vec<String> = judged.missing.iter().map(text).collect::<Result<_>>()?;
        let rows = rows(&judged, invalid);
        for (name, value) in &rows {
            tell(format_args!("{name:<44}{value}"));
        }
        for (text, object) in missing.iter().zip(&judged.missing) {
            let p = object.probability;
            let by_chance = object.by_chance;
            tell(format_args!("never sampled: {text}, probability {p:.2e}; by chance {by_chance:.1e}"));
        }
        if let Some(out) = &self.out {
            let mut shares = vec![0.0; target.len()];
            for &object in &samples {
                shares[object] += 1.0 / samples.len() as f64;
            }
            let title = format!("{} of {}", self.file.display(), self.task.name());
            let dots = target.iter().copied().zip(shares);
            write_page(out, &title, &rows, missing.iter().zip(&judged.missing), dots)?;
            report_file(out);
        }
        if self.json {
            let mut line = json!(judged);
            merge(
                &mut line,
                json!({ "example": "judge", "task": self.task.name(), "seed": self.seed,
                    "invalid": invalid, "log_z_true": listed.target.log_z, "missing_objects": missing }),
            );
            print(&line)?;
        }
        Ok(())
    }
}

/// Returns the rows of the table of results. Each row has a name and a value as text. `invalid` is the number
/// of samples that aren't objects of the task.
fn rows(judged: &Judgement, invalid: usize) -> Vec<(&'static str, String)> {
    let range = |of: Interval| format!("{:.4} ({:.4} to {:.4})", of.estimate, of.low, of.high);
    let verdict = if judged.like_perfect { "nothing" } else { "it isn't a perfect sampler" };
    vec![
        (
            "samples",
            format!("{}, {} different, of {} objects", judged.samples, judged.distinct, judged.objects),
        ),
        ("no objects of the task", invalid.to_string()),
        ("total variation (interval of the sampler's)", range(judged.tv)),
        ("  of as many perfect samples (range)", range(judged.tv_floor)),
        ("Jensen-Shannon divergence", range(judged.jsd)),
        ("  of as many perfect samples (range)", range(judged.jsd_floor)),
        ("flow consistency on subsets", range(judged.consistency.fcs)),
        ("  of as many perfect samples", format!("{:.4}", judged.consistency.floor)),
        ("modes", format!("{} of {}", judged.modes_found, judged.modes)),
        ("mass that was never sampled", format!("{:.4}", judged.missing_mass)),
        ("what speaks against it", verdict.to_owned()),
    ]
}

/// Writes a web page with the table of results, a plot that has a dot for each object, and a table of the
/// objects that were never sampled.
fn write_page<'a>(
    path: &Path,
    title: &str,
    rows: &[(&str, String)],
    missing: impl Iterator<Item = (&'a String, &'a Missing)>,
    target_and_share: impl Iterator<Item = (f64, f64)>,
) -> Result<()> {
    let panel =
        Panel::learned_against_target("objects", target_and_share).labels("probability", "share of samples");
    let title = escaped(title);
    let picture = Figure::new("").panel(panel).to_svg()?;
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta \
         charset=\"utf-8\"><title>{title}</title>\n<style>body {{ font-family: sans-serif; margin: 2em; }} \
         td, th {{ padding: 0.2em 1em; text-align: left; }} code {{ white-space: pre-wrap; \
         }}</style></head>\n<body><h1>{title}</h1>\n<table>\n"
    );
    for (name, value) in rows {
        let _ = writeln!(out, "<tr><td>{}</td><td>{}</td></tr>", escaped(name), escaped(value));
    }
    let _ = write!(out, "</table>\n{picture}\n");
    let mut missing = missing.peekable();
    if missing.peek().is_some() {
        out += "<h2>The heaviest objects that were never \
            sampled</h2>\n<table><tr><th>object</th><th>probability</th><th>missed by chance</th></tr>\n";
        for (text, Missing { probability, by_chance, .. }) in missing {
            let cells =
                format!("<code>{}</code></td><td>{probability:.2e}</td><td>{by_chance:.1e}", escaped(text));
            let _ = writeln!(out, "<tr><td>{cells}</td></tr>");
        }
        out += "</table>\n";
    }
    out += "<p>Intervals hold with 95 % for any sampler. A perfect sampler's distances aren't 0 either: its \
        samples are as few.</p>\n</body></html>\n";
    std::fs::write(path, out).map_err(|source| Error::io(path, source))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
