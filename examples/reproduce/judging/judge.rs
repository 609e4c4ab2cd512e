//! A judgement of the samples of any library, beside the exact distribution of a task.

use std::path::PathBuf;

use clap::Parser;
use gfn::env::{EnumerableEnv, Reward};
use gfn::{Error, Result, Rng};
use gfn_judge::Judgement;
use serde_json::{Value, json};

use super::known::{Known, Listed, Look, TaskArgs};
use super::page;
use crate::run::files::{try_file, written};
use crate::run::lines::{print, tell};

/// Judge samples of any library by the exact distribution of a task
#[derive(Parser, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,
    /// The samples, in the format of the task
    file: PathBuf,
    /// Page to write, with pictures in it
    #[arg(long)]
    out: Option<PathBuf>,
    /// Seed of subsets and of what a perfect sampler would have drawn
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    args.out.as_deref().map_or(Ok(()), try_file)?;
    args.task.look(Judged(args))
}

struct Judged<'a>(&'a Args);

impl Look for Judged<'_> {
    fn look<E: EnumerableEnv, R: Reward<E::States>>(self, known: Known<E, R>) -> Result<()> {
        let (args, listed) = (self.0, known.listed()?);
        let (states, n_unreadable) = known.read(&args.file)?;
        let mut target = listed.of_objects(&listed.target.probs);
        // What is no object of the task stands for one that should never come.
        let foreign = target.len();
        target.push(0.0);
        let places = listed.graph.indices(&known.env, &states).into_iter();
        let object = |state: Option<usize>| {
            state.filter(|&state| listed.graph.can_end(state)).map_or(foreign, |state| listed.of[state])
        };
        let unreadable = std::iter::repeat_n(foreign, n_unreadable);
        let samples: Vec<usize> = places.map(object).chain(unreadable).collect();
        let invalid = samples.iter().filter(|&&object| object == foreign).count();
        if invalid == samples.len() {
            let remedy = "give objects of the task, as `reproduce truth` writes them";
            return Err(Error::file(&args.file, "none of its samples is an object of the task", remedy));
        }
        let judged = Judgement::new(&target, &samples, &mut Rng::seeded(args.seed))?;
        let missing = missing(&known, &listed, &judged)?;
        let mut counts = vec![0.0; target.len()];
        samples.iter().for_each(|&object| counts[object] += 1.0 / samples.len() as f64);
        let rows = page::rows(&judged, invalid);
        for (name, value) in &rows {
            tell(format_args!("{name:<44}{value}"));
        }
        for (text, object) in missing.iter().zip(&judged.missing) {
            tell(format_args!(
                "never sampled: {text}, probability {:.2e}; by chance {:.1e}",
                object.probability, object.by_chance
            ));
        }
        if let Some(out) = &args.out {
            let title = format!("{} of {}", args.file.display(), args.task.name());
            page::write(out, &title, &rows, (&missing, &judged.missing), target.iter().copied().zip(counts))?;
            written(out);
        }
        if args.json {
            let mut line = json!(judged);
            let head = json!({ "example": "judge", "task": args.task.name(), "seed": args.seed, "invalid": invalid,
                "log_z_true": listed.target.log_z, "missing_objects": missing });
            if let (Value::Object(line), Value::Object(head)) = (&mut line, head) {
                line.extend(head);
            }
            print(&line)?;
        }
        Ok(())
    }
}

/// The text of each object that is missing.
fn missing<E: EnumerableEnv, R: Reward<E::States>>(
    known: &Known<E, R>,
    listed: &Listed<E>,
    judged: &Judgement,
) -> Result<Vec<String>> {
    let states = listed.graph.states();
    judged.missing.iter().map(|object| known.text(states, listed.first[object.object])).collect()
}
