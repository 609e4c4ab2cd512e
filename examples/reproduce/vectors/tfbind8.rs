//! TFBind8: DNA of eight letters by how strongly a transcription factor binds it, and the exact distribution over all 65,536.

use std::path::PathBuf;

use clap::Parser;
use gfn::Result;
use gfn::metrics::Correlation;
use gfn::nn::BackwardPolicy;
use gfn::policy::KHot;
use gfn::replay::ReplayBuffer;
use gfn_gym::sequence::{Alphabet, TableReward, TokenSequence};
use serde_json::json;

use super::perceptron;
use crate::flags::Common;
use crate::run::{Recipe, Run};

/// Train a perceptron to write DNA that a transcription factor binds
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Scores of all sequences: a CSV file with the header `sequence,reward`, which scripts/tfbind8_table.py makes of the published one
    #[arg(long)]
    table: PathBuf,
    /// R is the score to this power
    #[arg(long, default_value_t = 3.0)]
    exponent: f64,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let sequence = TokenSequence::tf_bind_8();
    let env = sequence.env();
    let reward = TableReward::read(&sequence, &Alphabet::dna(), &args.table, None)?.with_exponent(args.exponent)?;
    let training = Recipe { steps: 10_000, batch: 64, epsilon: 0.05, lr: 2e-3, ..Recipe::default() };
    let run = Run::begin(&args.common, "tfbind8", "TFBind8".to_owned(), training)?;
    let (features, task) = (KHot::new(sequence.entries(), sequence.values()), json!({ "exponent": args.exponent }));
    let trainer = perceptron(&run, env, features, reward, BackwardPolicy::Uniform, &task)?;
    let trainer = run.replayed(trainer, ReplayBuffer::new)?;
    let Some(mut learned) = run.learn(trainer, "sequences", Vec::new())? else { return Ok(()) };
    if let Some(exact) = &learned.exact {
        let ends = exact.graph.ends();
        let of = |values: &[f64]| ends.iter().map(|&state| values[state]).collect::<Vec<f64>>();
        let correlation = Correlation::between(&of(&exact.probs), &of(&exact.target.log_rewards))?;
        learned.report.set("spearman", correlation.spearman);
    }
    learned.print()
}
