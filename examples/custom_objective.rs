//! An objective of your own: contrastive balance, a residual per pair of trajectories in which log Z cancels.

use gfn::env::StateGraph;
use gfn::metrics::Distances;
use gfn::objective::{Balance, Needs, Objective, Residuals, Scores, TrajectoryBalance};
use gfn::policy::{KHot, MlpPolicy, MlpPolicyConfig};
use gfn::report::Table;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::tensor::{segment_ids, segment_sum};
use gfn::train::{Fit, Trainer, TrainerConfig};
use gfn::{Result, Rng};
use gfn_gym::hypergrid::{HyperGrid, OriginalReward};

/// Contrastive balance (da Silva et al., *Embarrassingly Parallel GFlowNets*, 2024): `v(a) - v(b)` for two trajectories a and b, with
/// `v = sum log P_F - sum log P_B - log R(x)`, which is `-log Z` on each of them where the policy is right.
#[derive(Clone, Copy, Debug)]
struct ContrastiveBalance;

impl Balance for ContrastiveBalance {
    fn name(&self) -> &'static str {
        "contrastive balance"
    }
    // Log-probabilities and rewards are always there; besides them, batches of more than one trajectory.
    fn needs(&self) -> Needs {
        Needs { several: true, ..Needs::default() }
    }
    // `log_pf` and `log_pb` have a row per transition, `offsets` says where each trajectory begins, `log_reward` has a row per trajectory.
    fn residuals(&self, scores: &Scores) -> Result<Residuals> {
        let ids = segment_ids(&scores.offsets, scores.log_pf.device());
        let ratio = segment_sum(&(&scores.log_pf - &scores.log_pb), &ids, scores.len());
        let v = ratio - &scores.log_reward;
        // Each trajectory with the one behind it, the last with the first.
        let values = &v - v.roll(1, 0);
        let weights = values.ones_like() / scores.len() as f64;
        Ok(Residuals { values, weights })
    }
}

const STEPS: usize = 1_000;

/// The exact total variation after training on a grid of 8 x 8.
fn trained(objective: impl Objective + 'static, runtime: &Runtime) -> Result<f64> {
    let (env, mut rng) = (HyperGrid::new(2, 8)?, Rng::seeded(0));
    let reward = OriginalReward::standard(&env)?;
    let (features, network) = (KHot::new(env.ndim(), env.height()), MlpPolicyConfig::default());
    let policy = MlpPolicy::new(&env, features, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let config = TrainerConfig { batch: 16, ..TrainerConfig::default() };
    let mut trainer = Trainer::new(env, reward.clone(), policy, objective, config, rng)?;
    Fit::new(STEPS).run(&mut trainer)?;

    let space = StateGraph::build(&env, 64)?;
    let learned = space.terminating_distribution(&env, trainer.policy(), None)?;
    let target = space.target_distribution(&reward, None)?;
    Ok(Distances::between(&learned.probs, &target.probs)?.tv)
}

fn main() -> Result<()> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let mut table = Table::new(["objective", "total variation"]);
    table.push([Balance::name(&TrajectoryBalance).into(), trained(TrajectoryBalance, &runtime)?.into()]);
    table.push([Balance::name(&ContrastiveBalance).into(), trained(ContrastiveBalance, &runtime)?.into()]);
    println!("{table}\nAfter {STEPS} steps of 16 trajectories on a grid of 8 x 8, exact.");
    Ok(())
}
