//! How states are written in a record of training.

use std::sync::Arc;

use gfn::Result;
use gfn::env::{EnumerableEnv, Env, Reals, Rows, VectorStates};
use gfn::graph::{GraphEnv, GraphFormat, GraphState, GraphStates};
use gfn_gym::diffusion::DiffusionStates;
use gfn_record::Described;

use crate::molecules::Reading;

/// Says of a batch of states what a record holds of each.
pub(crate) type Describe<E> = Arc<dyn Fn(&E, &<E as Env>::States) -> Result<Vec<Described>> + Send + Sync>;

fn described(text: String, key: Vec<u8>) -> Described {
    Described { text, key, scores: Vec::new() }
}

fn bytes<const N: usize, T: Copy>(values: &[T], of: fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| of(value)).collect()
}

/// Graphs: SMILES of molecules, the lines of an edge list of others.
pub(crate) fn describe_graphs(reading: Option<Reading>) -> Describe<GraphEnv> {
    Arc::new(move |env: &GraphEnv, states: &GraphStates| {
        let text = |graph| -> Result<String> {
            match &reading {
                Some(reading) => Ok(reading.molecule(graph)?.smiles()),
                None => Ok(GraphFormat::EdgeList.write(std::slice::from_ref(graph))?.trim_end().replace('\n', "; ")),
            }
        };
        let keys = env.keys(states).into_iter();
        let pairs = states.graphs().iter().zip(keys);
        pairs.map(|(graph, key)| Ok(described(text(graph)?, bytes(key.words(), u64::to_le_bytes)))).collect()
    })
}

/// Vectors: their entries.
pub(crate) fn describe_vectors<E: Env<States = VectorStates>>() -> Describe<E> {
    Arc::new(|_, states: &VectorStates| {
        let rows = states.values().chunks_exact(states.width().max(1));
        Ok(rows.map(|row| described(joined(row, u16::to_string), bytes(row, u16::to_le_bytes))).collect())
    })
}

/// Acyclic graphs: their edges.
pub(crate) fn describe_structures() -> Describe<GraphEnv> {
    Arc::new(|env: &GraphEnv, states: &GraphStates| {
        let keys = env.keys(states).into_iter();
        let text = |graph: &GraphState| graph.edges().map(|(a, b)| format!("{a}>{b}")).collect::<Vec<_>>().join(" ");
        let pairs = states.graphs().iter().zip(keys);
        Ok(pairs.map(|(graph, key)| described(text(graph), bytes(key.words(), u64::to_le_bytes))).collect())
    })
}

/// Points: their coordinates.
pub(crate) fn describe_points<E: Env<States = Reals>>() -> Describe<E> {
    Arc::new(|_, states: &Reals| Ok(points(states)))
}

/// Points on their way through a diffusion.
pub(crate) fn describe_diffusion<E: Env<States = DiffusionStates>>() -> Describe<E> {
    Arc::new(|_, states: &DiffusionStates| Ok(points(&states.points)))
}

fn points(states: &Reals) -> Vec<Described> {
    let rows = (0..states.len()).map(|row| &states.values()[row * states.width()..(row + 1) * states.width()]);
    rows.map(|row| described(joined(row, |value| format!("{value:?}")), bytes(row, f64::to_le_bytes))).collect()
}

fn joined<T>(row: &[T], text: impl Fn(&T) -> String) -> String {
    row.iter().map(text).collect::<Vec<_>>().join(" ")
}
