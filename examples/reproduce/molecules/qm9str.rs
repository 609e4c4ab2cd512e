//! QM9str: molecules of five blocks, added at either end, and the exact distribution over all 161,051 of them.

use clap::Parser;
use gfn::Result;
use gfn::env::VectorEnv;
use gfn::metrics::Correlation;
use gfn::nn::BackwardPolicy;
use gfn::policy::KHot;
use gfn::replay::ReplayBuffer;
use gfn_molecules::qm9str::{Qm9Str, Qm9StrReward, molecule};
use serde_json::json;

use crate::flags::Common;
use crate::run::{Recipe, Run};
use crate::vectors::perceptron;

/// Train a perceptron to join blocks to molecules
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// R is the score to this power
    #[arg(long, default_value_t = 5.0)]
    exponent: f64,
    #[command(flatten)]
    common: Common,
}

/// Strings of the largest probability that are printed.
const SHOWN: usize = 5;

pub(crate) fn run(args: &Args) -> Result<()> {
    let reward = Qm9StrReward::with_exponent(args.exponent)?;
    let training = Recipe { steps: 20_000, batch: 64, epsilon: 0.05, lr: 2e-3, ..Recipe::default() };
    // More states than there are.
    let recipe = Recipe { exact_up_to: 200_000, ..training };
    let run = Run::begin(&args.common, "qm9str", "QM9str, five blocks".to_owned(), recipe)?;
    let (log_z, features) = (reward.log_z(), KHot::new(Qm9Str::ENTRIES, Qm9Str::VALUES));
    let task = json!({ "exponent": args.exponent });
    let trainer = perceptron(&run, VectorEnv::new(Qm9Str), features, reward, BackwardPolicy::Uniform, &task)?;
    let trainer = run.replayed(trainer, ReplayBuffer::new)?;
    let Some(mut learned) = run.learn(trainer, "objects", Vec::new())? else { return Ok(()) };
    learned.report.set("log_z_true", log_z);
    if let Some(exact) = &learned.exact {
        let ends = exact.graph.ends();
        let of = |values: &[f64]| ends.iter().map(|&state| values[state]).collect::<Vec<f64>>();
        let correlation = Correlation::between(&of(&exact.probs), &of(&exact.target.log_rewards))?;
        learned.report.set("spearman", correlation.spearman);
        let states = exact.graph.states();
        let best = exact.most_probable(SHOWN).into_iter().map(|state| {
            let molecule = molecule(&Qm9Str::blocks(states.row(state)))?;
            Ok(json!([molecule.smiles(), exact.probs[state], exact.target.log_rewards[state]]))
        });
        learned.report.set("most_probable", best.collect::<Result<Vec<_>>>()?);
    }
    learned.print()
}
