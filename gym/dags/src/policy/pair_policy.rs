//! Policies of networks on pairs of nodes.

use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv, Masks, Rows};
use gfn::nn::{Estimators, EstimatorsConfig, Parameters, Scope};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{Evaluation, HostPolicy, Policy};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

use super::features::adjacency;
use crate::{BayesianStructure, DagStates};

/// A copy of a policy for a roll-out.
pub type HostDags<'a> = Box<dyn HostPolicy<BayesianStructure, GraphActionCategorical> + 'a>;

/// A network that gives a logit for each ordered pair of nodes: what a [`PairPolicy`] is made of.
pub trait PairNetwork {
    /// Adjacency matrices `[B, d, d]`, sources by targets, to logits of edges `[B, d^2]` and numbers of graphs `[B, 1 or 2]`: the
    /// exit's, and log F if the network was built with it.
    fn forward(&self, adjacency: &Tensor) -> (Tensor, Tensor);

    /// Logits of slots `[B, d^2 + 1]` from those of edges `[B, d^2]` and exits `[B, 1]`: side by side, unless the network says otherwise.
    fn slots(&self, edges: &Tensor, exit: &Tensor, _masks: &Masks) -> Tensor {
        Tensor::cat(&[edges, exit], 1)
    }

    /// A copy for a roll-out ([`Policy::on_host`]), if there is such a form.
    fn on_host(&self) -> Option<HostDags<'_>> {
        None
    }
}

/// P_F and log F of a [`PairNetwork`], with a uniform P_B: [`NodeAttention`](crate::NodeAttention) and
/// [`EdgeTransformer`](crate::EdgeTransformer).
///
/// ```
/// use gfn::env::Env;
/// use gfn::{objective::Quantities, policy::Policy};
/// use gfn_dags::{BayesianStructure, NodeAttention, NodeAttentionConfig, StructureConfig};
/// let env = BayesianStructure::new(StructureConfig::new(4))?;
/// let config = NodeAttentionConfig { embedding: 16, ..NodeAttentionConfig::default() };
/// let policy = NodeAttention::new(&env, config, tch::Device::Cpu, tch::Kind::Float, &mut gfn::Rng::seeded(0))?;
/// let evaluation = policy.evaluate(&env, &env.initial(&[0; 2]), None, Quantities::PF)?;
/// assert_eq!(evaluation.pf.map(|pf| pf.masks().n_legal(0)), Some(12 + 1));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct PairPolicy<N> {
    n_nodes: usize,
    flow: bool,
    network: N,
    estimators: Estimators,
    parameters: Parameters,
}

impl<N: PairNetwork> PairPolicy<N> {
    /// The policy of a network that `network` builds, given the numbers that it is to give for a graph: 1, or 2 with log F.
    ///
    /// # Errors
    /// [`Error::Config`] for conditions, which it doesn't take.
    pub fn of(
        env: &BayesianStructure,
        config: &EstimatorsConfig,
        (device, kind): (Device, Kind),
        rng: &mut Rng,
        network: impl FnOnce(&mut Scope<'_>, i64) -> N,
    ) -> Result<Self> {
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let network = network(&mut scope, 1 + i64::from(config.flow));
        let estimators = Estimators::new(&mut scope, config, None)?;
        parameters.check()?;
        Ok(Self { n_nodes: env.n_nodes(), flow: config.flow, network, estimators, parameters })
    }
}

impl<N: PairNetwork> Policy<BayesianStructure> for PairPolicy<N> {
    type Dist = GraphActionCategorical;

    fn evaluate(
        &self,
        env: &BayesianStructure,
        states: &DagStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        if conditions.is_some_and(|conditions| conditions.size().get(1) != Some(&0)) {
            let remedy = "sample without conditions, or use a policy of perceptrons, which takes them";
            return Err(Error::missing("a policy of pairs", "a network built for conditions", remedy));
        }
        check_nodes(states, self.n_nodes)?;
        let mut evaluation = Evaluation::default();
        let log_flow = wants.has(Quantity::LogFlow) && self.flow;
        if wants.has(Quantity::LogPf) || log_flow {
            let d = self.n_nodes as i64;
            let adjacency = Tensor::from_slice(&adjacency(states)).view([states.len() as i64, d, d]);
            let adjacency = adjacency.to_device(self.parameters.device()).to_kind(self.parameters.kind());
            let (edges, graph) = self.network.forward(&adjacency);
            if wants.has(Quantity::LogPf) {
                let masks = env.masks(Direction::Forward, states);
                let logits = self.network.slots(&edges, &graph.narrow(1, 0, 1), &masks);
                evaluation.pf = Some(GraphActionCategorical::new(masks, &[logits])?);
            }
            evaluation = evaluation.with(Quantity::LogFlow, log_flow.then(|| graph.select(1, 1)));
        }
        if wants.has(Quantity::LogPb) {
            evaluation.pb = Some(GraphActionCategorical::uniform(env.masks(Direction::Backward, states)));
        }
        Ok(evaluation)
    }

    fn on_host(&self, direction: Direction) -> Option<HostDags<'_>> {
        // P_B is uniform and asks no network.
        if direction == Direction::Forward { self.network.on_host() } else { None }
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.estimators.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(&self.parameters)
    }
}

/// Refuses graphs of another number of nodes than the network's.
pub(super) fn check_nodes(states: &DagStates, n_nodes: usize) -> Result<()> {
    match states.n_nodes() == n_nodes {
        true => Ok(()),
        false => Err(Error::shape(
            "graphs of a network on pairs of nodes",
            [states.len() as i64, n_nodes as i64],
            [states.len() as i64, states.n_nodes() as i64],
            "give graphs of the environment that it was made for",
        )),
    }
}

/// Checks that heads of attention can share an embedding, which `divides` must divide as well.
pub(super) fn check_heads(embedding: i64, heads: i64, divides: i64) -> Result<()> {
    match heads > 0 && embedding > 0 && embedding % heads == 0 && embedding % divides == 0 {
        true => Ok(()),
        false => Err(Error::config(
            "embedding and heads",
            format!("{embedding} and {heads}"),
            "an embedding above 0 that is a multiple of the heads (and of 2, for attention between pairs)",
        )),
    }
}
