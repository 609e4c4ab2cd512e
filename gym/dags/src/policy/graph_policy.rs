use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv, Rows};
use gfn::graph::GraphBatch;
use gfn::nn::GraphNetwork;
use gfn::nn::{HostGraphNet, Parameters};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::{Evaluation, HostPolicy, Policy};
use gfn::{Error, Result};
use tch::Tensor;

use crate::{BayesianStructure, DagStates};

/// The policy of a network over graphs on the rows of bits of [`BayesianStructure`]: states are encoded as a
/// [`GraphBatch`], and the network's blocks of logits (pairs, exit; edges for P_B) are put in the order of the slots.
///
/// A network is made for the twin on petgraph, [`DagGraphs`](crate::DagGraphs), and told which node is which: variables are
/// distinguishable.
///
/// ```
/// use gfn::env::Env;
/// use gfn::nn::{GraphNet, GraphNetConfig};
/// use gfn::{objective::Quantities, policy::Policy};
/// use gfn_dags::{BayesianStructure, DagGraphs, DagPolicy, StructureConfig};
/// let env = BayesianStructure::new(StructureConfig::new(4))?;
/// let config = GraphNetConfig { embedding: 16, ..GraphNetConfig::default() };
/// let net = GraphNet::new(&DagGraphs::new(&env)?, config, tch::Device::Cpu, tch::Kind::Float, &mut gfn::Rng::seeded(0))?;
/// let evaluation = DagPolicy(net).evaluate(&env, &env.initial(&[0; 2]), None, Quantities::PF)?;
/// assert_eq!(evaluation.pf.map(|pf| pf.masks().n_legal(0)), Some(12 + 1));
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct DagPolicy<N>(pub N);

impl<N: GraphNetwork> Policy<BayesianStructure> for DagPolicy<N> {
    type Dist = GraphActionCategorical;

    fn evaluate(
        &self,
        env: &BayesianStructure,
        states: &DagStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let arrays = states.to_arrays()?;
        let batch = GraphBatch::new(env.schema(), &arrays, conditions, self.0.parameters().device())?;
        let output = self.0.forward(&batch, wants)?;
        let (rows, pairs) = (states.len() as i64, (env.n_nodes() * env.n_nodes()) as i64);
        let mut evaluation = Evaluation { values: output.values, ..Evaluation::default() };
        if let (true, Some(blocks)) = (wants.has(Quantity::LogPf), output.pf) {
            let [add, exit] =
                sized(&blocks, [states.len() * env.n_nodes().pow(2), states.len()], "forward logits", Tensor::numel)?;
            let logits = Tensor::cat(&[add.view([rows, pairs]), exit.view([rows, 1])], 1);
            let masks = env.masks(Direction::Forward, states);
            evaluation.pf = Some(GraphActionCategorical::new(masks, &[logits])?);
        }
        if wants.has(Quantity::LogPb) {
            let masks = env.masks(Direction::Backward, states);
            evaluation.pb = Some(match output.pb {
                None => GraphActionCategorical::uniform(masks),
                Some(blocks) => {
                    let slots: Vec<i64> = arrays.edge_pairs().map(|pair| pair as i64).collect();
                    let [remove] = sized(&blocks, [slots.len()], "backward logits", Tensor::numel)?;
                    let slots = Tensor::from_slice(&slots).to_device(batch.device());
                    let logits = Tensor::zeros([rows * pairs], (remove.kind(), remove.device()));
                    let logits = logits.index_copy(0, &slots, &remove.view([-1]));
                    GraphActionCategorical::new(masks, &[logits.view([rows, pairs])])?
                }
            });
        }
        Ok(evaluation)
    }

    fn on_host(
        &self,
        direction: Direction,
    ) -> Option<Box<dyn HostPolicy<BayesianStructure, GraphActionCategorical> + '_>> {
        match direction {
            Direction::Forward => Some(Box::new(HostDagPolicy(self.0.on_host(direction)?))),
            // A learned P_B is left to libtorch: its logits are those of edges.
            Direction::Backward => None,
        }
    }

    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        self.0.log_z(conditions, n)
    }

    fn parameters(&self) -> Option<&Parameters> {
        Some(self.0.parameters())
    }
}

/// P_F of a [`DagPolicy`] for a roll-out.
struct HostDagPolicy(HostGraphNet);

impl HostPolicy<BayesianStructure, GraphActionCategorical> for HostDagPolicy {
    fn distribution(&self, env: &BayesianStructure, states: &DagStates) -> Result<GraphActionCategorical> {
        let blocks = self.0.forward(&states.to_arrays()?, None)?;
        let pairs = env.n_nodes() * env.n_nodes();
        let [add, exit] = sized(&blocks, [states.len() * pairs, states.len()], "forward logits", Vec::len)?;
        let logits = add.chunks_exact(pairs).zip(exit).flat_map(|(add, exit)| add.iter().chain([exit])).copied();
        GraphActionCategorical::on_host(env.masks(Direction::Forward, states), logits.collect())
    }
}

/// Blocks of logits of one number for each of these many rows.
fn sized<'a, T, const K: usize>(
    blocks: &'a [T],
    rows: [usize; K],
    what: &str,
    len: impl Fn(&T) -> usize,
) -> Result<[&'a T; K]> {
    let got: Vec<usize> = blocks.iter().map(len).collect();
    if got != rows {
        let lengths = |values: &[usize]| values.iter().map(|&n| n as i64).collect::<Vec<_>>();
        return Err(Error::shape(
            what,
            lengths(&rows),
            lengths(&got),
            "give a block for pairs of nodes and one for the exit, or one for edges, as for `DagGraphs`",
        ));
    }
    Ok(std::array::from_fn(|k| &blocks[k]))
}
