//! The parts that networks on pairs of nodes share.

use gfn::graph::GraphBatch;
use gfn::nn::{Estimators, EstimatorsConfig, NetworkOutput, Parameters, Scope};
use gfn::quantity::{Quantities, Quantity};
use gfn::{Error, Result, Rng};
use tch::{Device, Kind, Tensor};

/// The parameters of a network, log Z among them, and the graphs that it is for.
#[derive(Debug)]
pub(super) struct PairEstimators {
    n_nodes: usize,
    flow: bool,
    pub(super) estimators: Estimators,
    pub(super) parameters: Parameters,
}

impl PairEstimators {
    /// The parameters of a network for graphs of `n_nodes`, and the network that `build` makes, given the numbers that it is to give for a
    /// graph: the exit's logit, and log F if that is asked for.
    pub(super) fn with<N>(
        n_nodes: usize,
        config: &EstimatorsConfig,
        device: Device,
        kind: Kind,
        rng: &mut Rng,
        build: impl FnOnce(&mut Scope<'_>, i64) -> N,
    ) -> Result<(Self, N)> {
        let mut parameters = Parameters::new(device, kind);
        let mut scope = parameters.scope(rng);
        let network = build(&mut scope, 1 + i64::from(config.flow));
        let estimators = Estimators::new(&mut scope, config, None)?;
        parameters.check()?;
        Ok((Self { n_nodes, flow: config.flow, estimators, parameters }, network))
    }

    /// The output of a network that makes logits of edges `[B, d^2]` and numbers of graphs `[B, 1 or 2]` of adjacency matrices `[B, d, d]`,
    /// sources by targets. P_B is uniform.
    pub(super) fn output(
        &self,
        batch: &GraphBatch<'_>,
        wants: Quantities,
        forward: impl FnOnce(&Tensor) -> (Tensor, Tensor),
    ) -> Result<NetworkOutput> {
        if batch.conditions.as_ref().is_some_and(|conditions| conditions.size().get(1) != Some(&0)) {
            let remedy = "sample without conditions, or use a policy of perceptrons, which takes them";
            return Err(Error::missing("a network on pairs", "a network built for conditions", remedy));
        }
        let (b, n) = (batch.len(), self.n_nodes);
        if let Some(other) = batch.arrays.sizes().find(|&size| size != n) {
            let remedy = "give graphs of the environment that it was made for";
            return Err(Error::shape("graphs of a network on pairs", [n as i64], [other as i64], remedy));
        }
        let log_flow = wants.has(Quantity::LogFlow) && self.flow;
        if !wants.has(Quantity::LogPf) && !log_flow {
            return Ok(NetworkOutput::default());
        }
        let mut adjacency = vec![0f32; b * n * n];
        batch.arrays.edge_pairs().for_each(|pair| adjacency[pair] = 1.0);
        let adjacency = Tensor::from_slice(&adjacency).view([b as i64, n as i64, n as i64]);
        let adjacency = adjacency.to_device(self.parameters.device()).to_kind(self.parameters.kind());
        let (edges, graph) = forward(&adjacency);
        let pf = Some(vec![edges.view([-1, 1]), graph.narrow(1, 0, 1)]);
        let values = log_flow.then(|| (Quantity::LogFlow, graph.select(1, 1))).into_iter().collect();
        Ok(NetworkOutput { pf, values, ..NetworkOutput::default() })
    }
}

/// Checks that heads of attention can share an embedding, which `divides` must divide as well.
pub(super) fn check_heads(embedding: i64, heads: i64, divides: i64) -> Result<()> {
    if heads > 0 && embedding > 0 && embedding % heads == 0 && embedding % divides == 0 {
        return Ok(());
    }
    Err(Error::config(
        "embedding and heads",
        format!("{embedding} and {heads}"),
        "an embedding above 0 that is a multiple of the heads (and of 2, for attention between pairs)",
    ))
}
