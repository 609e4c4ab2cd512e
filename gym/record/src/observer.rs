use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gfn::env::{Env, Rows};
use gfn::rollout::ReplayEnv;
use gfn::train::{Observer, Record, Trainer};
use gfn::{Error, Result};
use serde_json::{Value, json};

use super::{RecordWriter, Sample};

/// A record's words for an object, besides its reward.
#[derive(Clone, PartialEq, Debug)]
pub struct Described {
    /// The text that people write it as.
    pub text: String,
    /// The key that makes it the same object as another.
    pub key: Vec<u8>,
    /// Its scores, one per column; NaN for one that it doesn't have.
    pub scores: Vec<f64>,
}

type Describe<E> = Box<dyn Fn(&E, &<E as Env>::States) -> Result<Vec<Described>> + Send>;

/// An observer that records all objects that training draws: those of the policy, of a teacher, and what local search ended at. Not
/// what is replayed or given, nor the random walks that fill a buffer.
///
/// Its run is part of the checkpoint: a resumed run drops what was recorded of the steps that it makes again, so that each step is
/// there once ([runs](super)). Rows are committed after each step.
pub struct TrainingRecord<E: Env> {
    path: PathBuf,
    columns: Vec<String>,
    describe: Describe<E>,
    writer: Option<RecordWriter>,
    spent: Duration,
}

impl<E: Env> std::fmt::Debug for TrainingRecord<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrainingRecord").field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl<E: Env> TrainingRecord<E> {
    /// Records in this file; `columns` are the names of the scores, and `describe` says what finished objects are.
    pub fn new(
        path: impl Into<PathBuf>,
        columns: &[&str],
        describe: impl Fn(&E, &E::States) -> Result<Vec<Described>> + Send + 'static,
    ) -> Self {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Self { path: path.into(), columns, describe: Box::new(describe), writer: None, spent: Duration::ZERO }
    }

    /// The time that it has taken so far.
    #[must_use]
    pub fn spent(&self) -> Duration {
        self.spent
    }
}

impl<E: ReplayEnv> Observer<E> for TrainingRecord<E> {
    fn name(&self) -> &str {
        "training_record"
    }

    fn start(&mut self, trainer: &Trainer<E>, state: Option<&Value>) -> Result<()> {
        trainer.check_sees_all("a record of what is trained on")?;
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        // One file has one writer at a time.
        self.writer = None;
        self.writer = Some(match state.and_then(|state| state["run"].as_str()) {
            Some(token) => RecordWriter::go_on(&self.path, &columns, token, trainer.steps_done())?,
            None => RecordWriter::new_run(&self.path, &columns)?,
        });
        Ok(())
    }

    fn after_step(&mut self, trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        let began = Instant::now();
        let (Some(writer), Some(latest)) = (&mut self.writer, trainer.latest()) else {
            return Ok(ControlFlow::Continue(()));
        };
        let fresh: Vec<usize> = (0..trainer.n_fresh()).collect();
        let described = (self.describe)(trainer.env(), &latest.terminal_states().select(&fresh))?;
        let rewards = latest.recorded_log_rewards().unwrap_or_default();
        if described.len() != fresh.len() || rewards.len() < fresh.len() {
            return Err(Error::shape(
                "what is recorded of a step",
                [fresh.len() as i64],
                [described.len().min(rewards.len()) as i64],
                "let `describe` say something of each object",
            ));
        }
        let samples = described.into_iter().zip(rewards).map(|(Described { text, key, scores }, &log_reward)| Sample {
            text,
            key,
            log_reward,
            scores,
        });
        writer.append(record.step, &samples.collect::<Vec<_>>())?;
        self.spent += began.elapsed();
        Ok(ControlFlow::Continue(()))
    }

    /// A checkpoint must not outlive the rows before it.
    fn save(&mut self) -> Result<Value> {
        let Some(writer) = &self.writer else { return Ok(Value::Null) };
        writer.sync()?;
        Ok(json!({ "run": writer.token() }))
    }
}
