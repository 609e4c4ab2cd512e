//! Defines a custom objective. The objective needs two quantities that no objective of the library needs: the
//! entropy of the policy, and the state flows of a target network.

use gfn::prelude::*;
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

    fn loss(&self, scores: &Scores, regression: &dyn RegressionLoss) -> gfn::Result<Tensor> {
        let log_flow = scores.need(Quantity::LogFlow, self.name())?;
        let target = scores.need(Quantity::TargetLogFlow, self.name())?;
        let entropy = scores.need(Quantity::Entropy, self.name())?;
        let next = scores.behind(target, &scores.log_reward);
        let residuals = log_flow + &scores.log_pf - next - &scores.log_pb;
        Ok((regression.apply(&residuals)? - entropy * self.bonus).mean(residuals.kind()))
    }
}

const STEPS: usize = 2_000;

/// Trains a policy on a grid of 8 x 8 points, and computes the exact distance between its distribution and R
/// / Z.
fn main() -> gfn::Result<()> {
    let grid = HyperGrid::new(2, 8)?;
    let estimators = EstimatorsConfig::with_flow(true);
    let config = TrainerConfig {
        batch: 32,
        adam: AdamConfig { lr: 1e-3, ..AdamConfig::default() },
        lr_scale: Schedule::Linear { from: 1.0, to: 0.01, steps: STEPS },
        ..TrainerConfig::default()
    };
    let mut trainer = Experiment::new(grid.env(), OriginalReward::standard(&grid)?)
        .network(MlpPolicyConfig { estimators, ..MlpPolicyConfig::default() })
        .objective(TargetBalance { bonus: 1e-4 })
        .training(config)
        .steps(STEPS)
        .trainer()?
        .with_target_network(5)?;
    Fit::for_planned_steps().run(&mut trainer)?;
    let exact = Trained::new(trainer).exact(1_000)?;
    println!("Total variation after {STEPS} steps: {:.4}, exact.", exact.distances.tv);
    Ok(())
}
