//! The environment of acyclic graphs as operations on adjacency matrices, for roll-outs on a device.

use gfn::env::{Direction, Rows, TensorEnv, TensorForm};
use gfn::graph::{Edge, GraphState, GraphStates};
use tch::{Device, Kind, Tensor};

use super::StructureConfig;
use crate::on_device::OnDevice;

/// The largest number of nodes for which [`BayesianStructure`](super::BayesianStructure) has a tensor form. A
/// state has n^2 entries of 8 bytes, and a trajectory up to n (n - 1) / 2 edges, so 128 trajectories between
/// graphs of 32 nodes take up to half a gigabyte.
pub(super) const MAX_TENSOR_NODES: usize = 32;

/// Acyclic graphs as adjacency matrices. Entry `source * n + target` of a state is 1 if the graph has this
/// edge, and the move of the same number adds or removes it.
struct Adjacencies {
    config: StructureConfig,
    /// The slots of the forbidden edges.
    forbidden: OnDevice,
    /// The slots of the required edges.
    required: OnDevice,
}

/// Returns the tensor form of an environment with this valid configuration.
pub(super) fn tensor_form(config: StructureConfig) -> TensorForm<GraphStates> {
    let env = Adjacencies { config, forbidden: OnDevice::default(), required: OnDevice::default() };
    TensorForm::new(env, to_tensor, from_tensor)
}

impl Adjacencies {
    /// Returns `states` with `value` in the entries of these edges.
    fn fill(&self, edges: &[(u32, u32)], slots: &OnDevice, states: &Tensor, value: i64) -> Tensor {
        let n = self.config.nodes;
        let build = || {
            let slots: Vec<_> = edges.iter().map(|&(a, b)| i64::from(a) * n as i64 + i64::from(b)).collect();
            Tensor::from_slice(&slots)
        };
        states.index_fill(1, &slots.get(states.device(), build), value)
    }
}

impl TensorEnv for Adjacencies {
    fn width(&self) -> usize {
        self.config.nodes * self.config.nodes
    }

    fn n_values(&self) -> usize {
        2
    }

    fn n_moves(&self, _: Direction) -> usize {
        self.width()
    }

    fn legal(&self, direction: Direction, states: &Tensor) -> Tensor {
        let StructureConfig { nodes, max_parents, forbidden, required } = &self.config;
        if direction == Direction::Backward {
            return self.fill(required, &self.required, &states.eq(1), 0);
        }
        let n = *nodes as i64;
        let edges = states.view([-1, n, n]);
        // Each product doubles the length of the paths that are found. A path has at most n - 1 edges.
        let mut reach = edges.to_kind(Kind::Float) + Tensor::eye(n, (Kind::Float, states.device()));
        let mut length = 1;
        while length < n - 1 {
            reach = reach.bmm(&reach).clamp_max(1);
            length *= 2;
        }
        // The edge a -> b closes a cycle if there is a path from b to a.
        let mut legal = edges.eq(0).logical_and(&reach.transpose(1, 2).eq(0));
        if let Some(most) = max_parents {
            let n_parents = edges.sum_dim_intlist(1, true, Kind::Int64);
            legal = legal.logical_and(&n_parents.lt(*most as i64));
        }
        self.fill(forbidden, &self.forbidden, &legal.reshape([-1, n * n]), 0)
    }

    fn step(&self, direction: Direction, states: &Tensor, moves: &Tensor) -> Tensor {
        states.scatter_value(1, &moves.unsqueeze(1), i64::from(direction == Direction::Forward))
    }

    fn reverse(&self, _: Direction, _: &Tensor, moves: &Tensor) -> Tensor {
        moves.shallow_clone()
    }

    fn initial(&self, n: i64, device: Device) -> Tensor {
        let empty = Tensor::zeros([n, self.width() as i64], (Kind::Int64, device));
        self.fill(&self.config.required, &self.required, &empty, 1)
    }
}

/// Copies graphs to a tensor. A graph with another number of nodes becomes a row of -1, which no state has.
fn to_tensor(env: &dyn TensorEnv, states: &GraphStates) -> Tensor {
    let width = env.width();
    let n = width.isqrt();
    let mut values = vec![0i64; states.len() * width];
    for (graph, row) in states.graphs().iter().zip(values.chunks_exact_mut(width)) {
        if graph.n_nodes() == n {
            graph.edges().for_each(|(a, b)| row[a as usize * n + b as usize] = 1);
        } else {
            row.fill(-1);
        }
    }
    Tensor::from_slice(&values).view([states.len() as i64, width as i64])
}

/// Builds graphs from adjacency matrices. Edges are added in the order of their slots. The diagonal, which is
/// 0 in every state, is ignored.
fn from_tensor(states: &Tensor) -> GraphStates {
    let width = states.size()[1] as usize;
    let n = width.isqrt();
    let mut values = vec![0i64; states.numel()];
    states.contiguous().copy_data(&mut values, states.numel());
    let build = |row: &[i64]| {
        let mut graph = GraphState::directed(n);
        for slot in (0..width).filter(|&slot| row[slot] == 1 && slot / n != slot % n) {
            // An edge between different nodes that is added once can't fail.
            drop(graph.add_edge((slot / n) as u32, (slot % n) as u32, Edge::default()));
        }
        graph
    };
    values.chunks_exact(width).map(build).collect::<Vec<_>>().into()
}
