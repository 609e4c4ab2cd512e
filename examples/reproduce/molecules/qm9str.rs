//! QM9str: molecules of five blocks, added at either end, and the exact distribution over all 161,051 of them.

use clap::Parser;
use gfn::Result;
use gfn::env::VectorEnv;
use gfn::metrics::Correlation;
use gfn::policy::KHot;
use gfn_molecules::qm9str::{Qm9Str, Qm9StrReward, molecule};
use serde_json::json;

use crate::cli::{Common, Defaults, VectorTask};

/// Train a perceptron to join blocks to molecules
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// R is the score to this power
    #[arg(long, default_value_t = 5.0)]
    exponent: f64,
    #[command(flatten)]
    common: Common,
}

/// More states than there are.
const EXACT_LIMIT: usize = 200_000;
/// Strings of the largest probability that are printed.
const SHOWN: usize = 5;

pub(crate) fn run(args: &Args) -> Result<()> {
    let reward = Qm9StrReward::with_exponent(args.exponent)?;
    let task = VectorTask {
        example: "qm9str",
        title: "QM9str, five blocks".into(),
        env: VectorEnv(Qm9Str),
        features: KHot::new(Qm9Str::ENTRIES, Qm9Str::VALUES),
        defaults: Defaults { steps: 20_000, batch: 64, epsilon: 0.05, lr: 2e-3, ..Defaults::default() },
        exact_limit: EXACT_LIMIT,
        log_z_true: Some(reward.log_z()),
        reward,
        description: json!({ "exponent": args.exponent }),
        adjust: Box::new(|config| config),
        diverse: None,
        is_mode: None,
    };
    task.run(&args.common, |run| {
        let mut extra = run.modes()?;
        let Some((exact, probs)) = &run.exact else { return Ok((extra, Vec::new())) };
        let mut ends = exact.graph.ends();
        let of = |values: &[f64]| ends.iter().map(|&state| values[state]).collect::<Vec<f64>>();
        let correlation = Correlation::between(&of(probs), &of(&exact.target.log_rewards))?;
        extra.push(("spearman", json!(correlation.spearman)));
        ends.sort_by(|&a, &b| probs[b].total_cmp(&probs[a]));
        let states = exact.graph.states();
        let best = ends.iter().take(SHOWN).map(|&state| {
            let molecule = molecule(&Qm9Str::blocks(states.row(state)))?;
            Ok(json!([molecule.smiles(), probs[state], exact.target.log_rewards[state]]))
        });
        extra.push(("most_probable", json!(best.collect::<Result<Vec<_>>>()?)));
        Ok((extra, Vec::new()))
    })
}
