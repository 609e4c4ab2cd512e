//! Exactness: what a policy samples, without sampling noise where the states can be listed, and with honest bounds where not.
//!
//! | question | answer | for |
//! |---|---|---|
//! | what does this policy sample? | [`StateGraph::terminating_distribution`] | spaces of up to some millions of states |
//! | the same, of a policy that concentrates | [`pruned_distribution`] | larger spaces; says how much mass it dropped |
//! | what should it sample? | [`StateGraph::target_distribution`] | enumerable spaces |
//! | how far apart are they? | [`Distances`], [`modes_found`] | any two distributions |
//! | what would a perfect policy be? | [`ExactPolicy`], [`StateGraph::exact_flows`] | tests of objectives |
//! | what did these samples show? | [`StateGraph::empirical`] beside its [`NoiseFloor`] | samples |
//! | is log Z right? | [`estimate_log_z`], [`eubo`] | any environment |
//! | how probable are these objects? | [`estimate_log_probs`] | any environment |
//! | does probability follow the reward? | [`Correlation`] of log p(x) and log R(x) | a test set |
//! | which modes were seen, and when? | [`ModeTracker`] | training runs, samples |
//! | how far apart are two sets of points? | [`wasserstein2`], [`maximum_mean_discrepancy`] | continuous environments |
//! | how good and how different are the best? | [`TopK`] | samples |
//! | which trade-offs between objectives were found? | [`pareto_front`], [`hypervolume`], [`inverted_generational_distance`], [`r2_indicator`] | vectors of objectives |
//! | do samples lie where they were asked for? | [`focus_accuracy`] | the same, under a focus |
//!
//! Up to isomorphism a state stands for its class: a policy is pushed through one representative of each, which is right for
//! equivariant policies only, and those that aren't are refused ([`StateGraph::check_equivariance`]).

mod correlation;
mod distances;
mod empirical;
mod equivariance;
mod exact_policy;
mod flows;
mod log_probs;
mod log_z;
mod modes;
mod objectives;
mod order;
mod pruned;
mod state_graph;
mod target;
mod terminating;
mod top_k;
mod transport;

pub use correlation::Correlation;
pub use distances::{Distances, modes_covered, modes_found};
pub use empirical::NoiseFloor;
pub use exact_policy::ExactPolicy;
pub use flows::ExactFlows;
pub use log_probs::estimate_log_probs;
pub use log_z::{Estimate, LogZEstimate, estimate_log_z, eubo, importance_log_z};
pub use modes::{ModeCount, ModeTracker};
pub(crate) use objectives::cosine_of;
pub use objectives::{
    focus_accuracy, hypervolume, inverted_generational_distance, pareto_front, r2_indicator, simplex_grid,
};
pub use pruned::{PrunedDistribution, pruned_distribution};
pub use state_graph::{Child, StateGraph};
pub use target::Target;
pub use terminating::TerminatingDistribution;
pub use top_k::TopK;
pub use transport::{maximum_mean_discrepancy, wasserstein2};

use tch::Tensor;

use crate::dist::GraphActionCategorical;
use crate::env::{Direction, DiscreteEnv, Masks, Rows};
use crate::policy::{Policy, Wants};
use crate::{Error, Result};

/// States that go through a policy or an environment at once.
const CHUNK: usize = 8192;

/// The legal forward moves of a batch of states, one state after another.
struct Moves {
    rows: Vec<usize>,
    slots: Vec<u32>,
    /// Whether the move is the exit.
    exit: Vec<bool>,
}

impl Moves {
    fn of(masks: &Masks) -> Self {
        let mut out = Self { rows: Vec::new(), slots: Vec::new(), exit: Vec::new() };
        for row in 0..masks.len() {
            for slot in masks.legal_slots(row) {
                out.rows.push(row);
                out.slots.push(slot);
                out.exit.push(masks.is_exit(row, slot));
            }
        }
        out
    }

    /// The moves that aren't the exit.
    fn inner(&self) -> Vec<usize> {
        (0..self.exit.len()).filter(|&k| !self.exit[k]).collect()
    }
}

/// P_F of these states, without gradient; all under one condition vector `[C]`.
fn forward_policy<E: DiscreteEnv, P: Policy<E, Dist = GraphActionCategorical>>(
    env: &E,
    policy: &P,
    states: &E::States,
    conditions: Option<&Tensor>,
) -> Result<GraphActionCategorical> {
    let conditions = repeated(conditions, states.len());
    let evaluation = tch::no_grad(|| policy.evaluate(env, states, conditions.as_ref(), Wants::PF))?;
    evaluation.pf.ok_or(Error::Missing {
        objective: "an exact distribution",
        needs: "a forward policy",
        remedy: "use a policy that has one, such as UniformPolicy",
    })
}

/// log P_B of one backward action of each of these states, without gradient; equal states are evaluated once.
fn backward_log_probs<E: DiscreteEnv, P: Policy<E, Dist = GraphActionCategorical>>(
    env: &E,
    policy: &P,
    states: &E::States,
    actions: &[u32],
    conditions: Option<&Tensor>,
) -> Result<Vec<f64>> {
    let grouping = states.group();
    let distinct = grouping.merges().then(|| states.select(&grouping.first));
    let states = distinct.as_ref().unwrap_or(states);
    let conditions = repeated(conditions, states.len());
    let evaluation = tch::no_grad(|| policy.evaluate(env, states, conditions.as_ref(), Wants::PB))?;
    let pb = evaluation.pb.ok_or(Error::Missing {
        objective: "an exact flow",
        needs: "a backward policy",
        remedy: "use a policy that has one, such as UniformPolicy",
    })?;
    let (log_probs, offsets) = (pb.host_log_probs()?, pb.legal_offsets());
    let of_action = grouping.of.iter().zip(actions).map(|(&row, &slot)| {
        let range = offsets[row]..offsets[row + 1];
        match pb.legal_slots()[range.clone()].binary_search(&slot) {
            Ok(k) => Ok(log_probs[range.start + k]),
            Err(_) => Err(Error::IllegalAction {
                row,
                direction: Direction::Backward,
                slot: slot as usize,
                n_slots: pb.masks().row(row).len(),
                n_legal: range.len(),
                detail: "it undoes a forward move; `testing::check_env` says more".into(),
            }),
        }
    });
    of_action.collect()
}

/// One condition vector `[C]`, once per row.
fn repeated(conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
    conditions.map(|c| c.reshape([1, -1]).expand([n as i64, -1], false))
}
