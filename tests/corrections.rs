//! Tests of the symmetry correction in scores. If states are isomorphism classes, log |Aut| must be added to
//! log R, whether log R is computed or was recorded. For objectives relative to a prior, log |Aut| must not
//! be added, because the prior already gives the probability of the whole class.

use crate::spaces::ColouredGraphs;
use gfn::env::{Env, Reward};
use gfn::graph::{GraphState, GraphStates, log_automorphisms};
use gfn::objective::Quantity;
use gfn::objective::{Objective, RelativeLogPartitionVariance, RelativeTrajectoryBalance, TrustPcl, score};
use gfn::policy::{UniformPolicy, WithPrior};
use gfn::rollout::{Sampler, Trajectories};
use gfn::tensor::to_host;
use gfn::{Result, Rng};
use tch::{Kind, Tensor};

/// A log-reward of 1 per edge and -0.5 per node, which is defined for unfinished graphs, too.
struct Size;

fn size(graph: &GraphState) -> f64 {
    graph.n_edges() as f64 - 0.5 * graph.n_nodes() as f64
}

impl Reward<GraphStates> for Size {
    fn log_reward(&self, states: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(states.graphs().iter().map(size).collect())
    }
    fn partial_log_reward(
        &self,
        states: &GraphStates,
        conditions: Option<&Tensor>,
    ) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, conditions).map(Some)
    }
}

fn draw_trajectories<E: Env<States = GraphStates>>(env: &E) -> Trajectories<E>
where
    UniformPolicy: gfn::policy::Policy<E>,
{
    Sampler::new(env, &UniformPolicy).forward(64, &mut Rng::seeded(3)).unwrap()
}

/// Returns log R of each graph, and log R + log |Aut| of each graph.
fn raw_and_corrected(states: &GraphStates) -> (Vec<f64>, Vec<f64>) {
    states.graphs().iter().map(|graph| (size(graph), size(graph) + log_automorphisms(graph).unwrap())).unzip()
}

fn assert_close(what: &str, found: &Tensor, expected: &[f64]) {
    let found = to_host(found);
    assert_eq!(found.len(), expected.len(), "{what}");
    let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(off < 1e-5, "{what} is off by {off}");
}

#[test]
fn rewards_are_corrected_wherever_they_come_from() {
    let env = ColouredGraphs::env(4);
    let computed = draw_trajectories(&env);
    let ((raw, corrected), (_, partial)) =
        (raw_and_corrected(computed.terminal_states()), raw_and_corrected(computed.states()));
    assert!(raw.iter().zip(&corrected).filter(|(raw, corrected)| raw != corrected).count() > 10);
    let exit = computed.is_exit();
    let change: Vec<f64> =
        (0..exit.len()).map(|row| if exit[row] { 0.0 } else { partial[row + 1] - partial[row] }).collect();
    // A replay buffer stores log R without the correction, so recorded log-rewards must be corrected, too.
    let recorded = computed.clone().with_log_rewards(raw.clone()).unwrap();
    for trajectories in [computed, recorded] {
        let needs = Quantity::StateLogReward | Quantity::LogRewardChange;
        let scores = score(&env, &Size, &UniformPolicy, &trajectories, needs).unwrap();
        assert_close("log R", &scores.raw_log_reward, &raw);
        assert_close("log R |Aut|", &scores.log_reward, &corrected);
        assert_close("of partial states", scores.need(Quantity::StateLogReward, "test").unwrap(), &partial);
        assert_close("changes", scores.need(Quantity::LogRewardChange, "test").unwrap(), &change);
    }
}

#[test]
fn objectives_relative_to_a_prior_use_raw_rewards() {
    let env = ColouredGraphs::env(4);
    let trajectories = draw_trajectories(&env);
    let (raw, _) = raw_and_corrected(trajectories.terminal_states());
    // The policy equals the prior, so their log-probabilities cancel in the residual. With log Z = 0, only
    // the reward remains in it.
    let policy = WithPrior { policy: UniformPolicy, prior: UniformPolicy };
    let mut scores = score(&env, &Size, &policy, &trajectories, Quantity::LogPrior.into()).unwrap();
    scores
        .set(Quantity::LogZ, Tensor::zeros([raw.len() as i64], (Kind::Float, scores.log_pf.device())))
        .unwrap();
    let mean = raw.iter().sum::<f64>() / raw.len() as f64;
    let objectives: [(Box<dyn Objective>, f64, f64); 3] = [
        (Box::new(RelativeTrajectoryBalance::new(0.5).unwrap()), 0.5, 0.0),
        (Box::new(TrustPcl::new(0.5).unwrap()), 1.0, 0.0),
        (Box::new(RelativeLogPartitionVariance::new(0.5).unwrap()), 0.5, mean),
    ];
    for (objective, factor, shift) in objectives {
        let expected: Vec<f64> = raw.iter().map(|log_r| factor * (shift - log_r)).collect();
        assert_close(objective.name(), &objective.residuals(&scores).unwrap().values, &expected);
    }
}
