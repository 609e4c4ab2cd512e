//! Defines a custom objective. The objective needs two quantities that no objective of the library needs: the
//! entropy of the policy, and the state flows of a target network.

use gfn::env::StateGraph;
use gfn::metrics::Distances;
use gfn::nn::EstimatorsConfig;
use gfn::objective::{Objective, RegressionLoss, Scores};
use gfn::objective::{Quantities, Quantity};
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::tch::{Device, Kind, Tensor};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};

/// Detailed balance with the flow of the next state from a target network, and with a bonus for the entropy
/// of P_F.
///
/// Without the bonus, the residuals `log F(s) + log P_F - log F_target(s') - log P_B` are 0 for a policy that
/// samples in proportion to the reward. The bonus pulls the policy towards the uniform policy, so it must be
/// small.
#[derive(Debug)]
struct TargetBalance {
    bonus: f64,
}

impl Objective for TargetBalance {
    fn name(&self) -> &'static str {
        "detailed balance against a target network"
    }

    fn needs(&self) -> Quantities {
        Quantity::LogFlow | Quantity::TargetLogFlow | Quantity::Entropy
    }

    fn loss(&self, scores: &Scores, regression: RegressionLoss) -> Result<Tensor> {
        let log_flow = scores.need(Quantity::LogFlow, self.name())?;
        let target = scores.need(Quantity::TargetLogFlow, self.name())?;
        let entropy = scores.need(Quantity::Entropy, self.name())?;
        let next = scores.behind(target, &scores.log_reward);
        let residuals = log_flow + &scores.log_pf - next - &scores.log_pb;
        Ok((regression.apply(&residuals) - entropy * self.bonus).mean(residuals.kind()))
    }
}

const STEPS: usize = 2_000;

fn main() -> Result<()> {
    let tv = distance(STEPS, 1e-4)?;
    println!("Total variation after {STEPS} steps: {tv:.4}, exact.");
    Ok(())
}

/// Trains a policy on a grid of 8 x 8 points. Returns the exact distance between the policy's distribution
/// and R / Z.
fn distance(steps: usize, bonus: f64) -> Result<f64> {
    let grid = HyperGrid::new(2, 8)?;
    let mut rng = Rng::seeded(0);
    let env = grid.env();
    let reward = OriginalReward::standard(&grid)?;
    let config =
        MlpPolicyConfig { estimators: EstimatorsConfig::with_flow(true), ..MlpPolicyConfig::default() };
    let policy = MlpPolicy::new(&env, KHot::new(2, 8), config, Device::Cpu, Kind::Float, &mut rng)?;
    let config = TrainerConfig {
        batch: 32,
        adam: AdamConfig { lr: 1e-3, ..AdamConfig::default() },
        lr_scale: Schedule::Linear { from: 1.0, to: 0.01, steps },
        ..TrainerConfig::default()
    };
    let mut trainer =
        Trainer::new(env, reward, policy, TargetBalance { bonus }, config, rng)?.with_target_network(5)?;
    for _ in 0..steps {
        trainer.step()?;
    }
    let space = StateGraph::build(trainer.env(), 1_000)?;
    let learned = space.terminating_distribution(trainer.env(), trainer.policy(), None)?;
    let target = space.target_distribution(trainer.reward(), None)?;
    Ok(Distances::between(&learned.probs, &target.probs)?.tv)
}
