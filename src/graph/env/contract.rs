//! Checks for mistakes in a graph environment that no error would show: settings, backward masks, ways back.

use std::collections::HashMap;

use super::backward::derived_backward;
use crate::env::{Direction, DiscreteEnv, Env, Rows, Slots, instances_in_turn, random_moves, walk_back};
use crate::graph::{
    BackwardRule, GraphArrays, GraphEnv, GraphRules, GraphSchema, GraphState, GraphStates, labelled_key,
};
use crate::{Error, Result, Rng};

/// Random walks of [`check_sampled`].
const WALKS: usize = 16;
/// States of these walks that are looked at.
const LOOKED_AT: usize = 48;
/// Those of them, the last ones, from which ways back are drawn.
const WALKED_BACK: usize = 8;
/// Steps of a way back: far more than a walk has.
const MAX_STEPS: usize = 10_000;

/// Checks what can be known without a state: that graphs can hold what the schema says, and slots can be numbered.
pub(crate) fn check_settings<R: GraphRules>(env: &GraphEnv<R>) -> Result<()> {
    let schema = env.schema();
    schema.check()?;
    env.actions().check()?;
    for direction in [Direction::Forward, Direction::Backward] {
        Slots::slot(env.actions().most_slots(direction, schema.kind, schema.max_nodes))?;
    }
    Ok(())
}

/// Checks that a graph keeps to the schema.
pub(crate) fn check_fits(schema: &GraphSchema, graph: &GraphState) -> Result<()> {
    let too_many = || format!("has {} nodes, of at most {}", graph.n_nodes(), schema.max_nodes);
    let misfit = schema.misfit(&GraphArrays::of(std::slice::from_ref(graph))).map(|(_, what)| what);
    let Some(what) = misfit.or_else(|| (graph.n_nodes() > schema.max_nodes).then(too_many)) else {
        return Ok(());
    };
    Err(Error::contract("graphs keep to the environment's schema", format!("a graph {what}: {graph}; {schema:?}")))
}

/// Checks that backward masks that are given by type are those that derivation finds.
pub(crate) fn check_by_type<R: GraphRules>(env: &GraphEnv<R>, states: &GraphStates) -> Result<()> {
    if env.backward_rule() != BackwardRule::ByType {
        return Ok(());
    }
    let masks = env.masks(Direction::Backward, states);
    for (row, graph) in states.graphs().iter().enumerate() {
        let derived = derived_backward(env, graph);
        let Some(slot) = masks.row(row).iter().zip(&derived).position(|(by_type, derived)| by_type != derived) else {
            continue;
        };
        let words = env.describe(Direction::Backward, states, row, slot as u32);
        let (by_type, derived) = if derived[slot] { ("illegal", "legal") } else { ("legal", "illegal") };
        return Err(Error::contract(
            "backward masks by type are those that undoing each move finds",
            format!(
                "backward slot {slot} ({words}) of {graph} is {by_type} by type, {derived} by undoing it; correct the backward \
                 mask of the action type, or let the masks be derived (`BackwardRule::Derived`)"
            ),
        ));
    }
    Ok(())
}

/// Checks settings, and on some states of a few short random walks schema, backward masks and ways back.
///
/// It is for once per run, so it is cheap: large graphs, whose masks cost more, take fewer steps.
pub(in crate::graph) fn check_sampled<R: GraphRules>(env: &GraphEnv<R>) -> Result<()> {
    check_settings(env)?;
    let rng = &mut Rng::seeded(0);
    let steps = (4096 / env.schema().max_nodes.max(1)).clamp(2, 16);
    let mut walks = env.initial(&instances_in_turn(env, WALKS));
    let mut visited = Vec::new();
    for _ in 0..steps {
        let (going, slots) = random_moves(&env.masks(Direction::Forward, &walks), rng);
        if going.is_empty() {
            break;
        }
        walks = walks.select(&going);
        env.step(Direction::Forward, &mut walks, &slots)?;
        visited.extend_from_slice(walks.graphs());
    }
    check_instances_apart(env, &visited)?;
    let apart = visited.len().div_ceil(LOOKED_AT).max(1);
    let states = GraphStates::from(visited.into_iter().rev().step_by(apart).collect::<Vec<_>>());
    states.graphs().iter().try_for_each(|graph| check_fits(env.schema(), graph))?;
    check_by_type(env, &states)?;
    let last: Vec<usize> = (0..states.len().min(WALKED_BACK)).collect();
    walk_back(env, states.select(&last), MAX_STEPS, rng)
}

/// Checks that no two instances lead to the same graph: their flows and ways back differ, and a network sees the graph alone.
fn check_instances_apart<R: GraphRules>(env: &GraphEnv<R>, graphs: &[GraphState]) -> Result<()> {
    let mut seen = HashMap::new();
    for graph in graphs.iter().chain(env.initial_graphs()) {
        let other = *seen.entry(labelled_key(&graph.clone().with_instance(0))).or_insert(graph.instance());
        if other != graph.instance() {
            return Err(Error::contract(
                "no two instances lead to the same graph, because a network sees the graph alone",
                format!("instances {other} and {} lead to {graph}; give their nodes other classes", graph.instance()),
            ));
        }
    }
    Ok(())
}
