//! Tasks on discrete energy-based models. Each coordinate of a vector is set to one of two values, in any
//! order, and vectors are sampled in proportion to exp(-energy).

use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};

use crate::prelude::*;

/// Train a perceptron to sample the vectors of four coupled spins in proportion to exp(-energy)
#[derive(Args)]
pub(crate) struct Ebm {
    #[command(flatten)]
    common: Common,
}

impl Task for Ebm {
    fn run(&self) -> Result<()> {
        // Half of the actions are random in the first step. This finds isolated vectors of high reward, too.
        let recipe = Recipe {
            steps: 1_000,
            batch: 16,
            epsilon: 0.5,
            lr: 1e-3,
            exact_up_to: 60_000,
            ..Recipe::default()
        };
        let run = Run::begin(&self.common, recipe)?;
        learn(&run, 4, IsingReward::with_equal_couplings(4, 1.0)?, 0)
    }
}

/// Train a perceptron to sample the spins of a periodic square lattice (Ising model)
#[derive(Args)]
pub(crate) struct Ising {
    /// Number of spins along each side of the lattice
    #[arg(long, default_value_t = 3)]
    side: usize,
    #[command(flatten)]
    common: Common,
}

/// The coupling constant of neighbouring spins in the Ising model.
const COUPLING: f64 = 0.22;

impl Task for Ising {
    fn run(&self) -> Result<()> {
        let recipe = Recipe {
            steps: 4_000,
            epsilon: 0.5,
            lr: 2e-3,
            exact_up_to: 20_000,
            samples: 0,
            ..Recipe::default()
        };
        let run = Run::begin(&self.common, recipe)?;
        learn(&run, self.side * self.side, IsingReward::lattice(self.side, COUPLING, 1.0)?, 10_000)
    }
}

/// Trains a policy on `n` spins, and then estimates log Z from `samples` samples of the policy. If `samples`
/// is 0, there is no such estimate.
fn learn(run: &Run<'_>, n: usize, reward: IsingReward, samples: usize) -> Result<()> {
    // `log_z` is the exact value for lattices of up to 9 x 9 spins, which is computed row by row.
    let log_z = reward.log_z();
    let env = DiscreteEbm::new(n)?.env();
    let network = run.common.perceptron(BackwardPolicy::Uniform);
    let trainer = run.perceptron(env, reward, network, json!({ "spins": n }))?;
    run.learn(trainer, "objects", Vec::new(), |report, trainer, _| {
        report.set_log_z(log_z);
        if samples > 0 {
            report.extend(sampled(trainer, samples)?);
        }
        Ok(())
    })
}
