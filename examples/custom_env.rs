//! An environment of your own: what fits into a knapsack, by the moves of one vector.

mod cli;

use clap::Parser;
use cli::{Common, Defaults, VectorTask, main_of};
use gfn::env::{Direction, VectorEnv, VectorRules, VectorStates};
use gfn::policy::KHot;
use gfn::testing::check_env;
use gfn::{Result, Rng};
use serde_json::json;

/// Train on an environment of your own: what fits into a knapsack
#[derive(Parser, Debug)]
struct Args {
    /// What each item weighs; a set is worth more the more items are in it, and most with the first of them
    #[arg(long, value_delimiter = ',', default_values_t = [5, 3, 8, 2, 7, 4, 6, 1])]
    weights: Vec<u32>,
    /// What all of them may weigh together
    #[arg(long, default_value_t = 15)]
    capacity: u32,
    #[command(flatten)]
    common: Common,
}

/// Sets of items within a weight, packed one at a time; any of them can be the end. Entry `i` is 1 where item `i` is packed.
#[derive(Clone, Debug)]
struct Knapsack {
    weights: Vec<u32>,
    capacity: u32,
}

impl Knapsack {
    fn load(&self, row: &[u16]) -> u32 {
        row.iter().zip(&self.weights).filter(|(packed, _)| **packed == 1).map(|(_, weight)| weight).sum()
    }
}

impl VectorRules for Knapsack {
    type Key = Vec<u16>;

    fn width(&self) -> usize {
        self.weights.len()
    }
    fn n_moves(&self, _: Direction) -> usize {
        self.weights.len()
    }
    // Move `i` packs item `i`; backward it takes it out again, so that it is its own reverse.
    fn apply(&self, direction: Direction, row: &mut [u16], item: usize) -> Option<usize> {
        let fits = self.load(row) + self.weights.get(item)? <= self.capacity;
        row[item] = match (direction, row[item]) {
            (Direction::Forward, 0) if fits => 1,
            (Direction::Backward, 1) => 0,
            _ => return None,
        };
        Some(item)
    }
    fn key(&self, row: &[u16]) -> Vec<u16> {
        row.to_vec()
    }
}

fn main() -> std::process::ExitCode {
    let args = cli::parse::<Args>();
    main_of(|| run(&args))
}

fn run(args: &Args) -> Result<()> {
    let env = VectorEnv(Knapsack { weights: args.weights.clone(), capacity: args.capacity });
    // The author's part of the contract: steps, masks and the way back agree.
    check_env(&env, 50, &mut Rng::seeded(0))?;
    let log_reward = |row: &[u16]| (1..).zip(row).map(|(place, &packed)| f64::from(packed) / f64::from(place)).sum();
    let task = VectorTask {
        example: "custom_env",
        title: "what fits into a knapsack".into(),
        features: KHot::new(env.width(), 2),
        env,
        reward: move |states: &VectorStates, _: Option<&tch::Tensor>| Ok(states.rows().map(log_reward).collect()),
        defaults: Defaults::default(),
        exact_limit: 100_000,
        log_z_true: None,
        description: json!({ "weights": args.weights, "capacity": args.capacity }),
        adjust: Box::new(|config| config),
        is_mode: None,
    };
    task.run(&args.common, |run| Ok((run.modes()?, Vec::new())))
}
