//! The exact distribution of a task, as a table for other programs.

use std::path::PathBuf;

use clap::Parser;
use gfn::env::{EnumerableEnv, Reward};
use gfn::{Error, Result};
use serde_json::json;

use super::known::{Known, Look, TaskArgs};
use crate::run::files::{try_file, written};
use crate::run::lines::print;

/// Write the exact distribution of a task: objects, probabilities, log-rewards
#[derive(Parser, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    task: TaskArgs,
    /// CSV file to write
    #[arg(long)]
    out: PathBuf,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    try_file(&args.out)?;
    args.task.look(Written(args))
}

struct Written<'a>(&'a Args);

impl Look for Written<'_> {
    fn look<E: EnumerableEnv, R: Reward<E::States>>(self, known: Known<E, R>) -> Result<()> {
        let (listed, out) = (known.listed()?, &self.0.out);
        let wrong = |error: csv::Error| Error::file(out, error, "give another file");
        let mut table = csv::Writer::from_path(out).map_err(wrong)?;
        table.write_record(["object", "probability", "log_reward"]).map_err(wrong)?;
        let probs = listed.of_objects(&listed.target.probs);
        let mut objects = 0;
        for (&state, p) in listed.first.iter().zip(&probs).filter(|(state, _)| listed.graph.can_end(**state)) {
            let text = known.text(listed.graph.states(), state)?;
            let log_reward = listed.target.log_rewards[state];
            table.write_record([text, format!("{p:e}"), log_reward.to_string()]).map_err(wrong)?;
            objects += 1;
        }
        table.flush().map_err(|source| Error::io(out, source))?;
        written(out);
        if self.0.json {
            print(format_args!(
                "{}",
                json!({ "example": "truth", "task": self.0.task.name(), "objects": objects, "log_z": listed.target.log_z,
                "out": out })
            ))?;
        }
        Ok(())
    }
}
