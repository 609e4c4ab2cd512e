//! Checks for mistakes in a graph environment that no error would show: settings, backward masks, moves and what undoes them, ways back.

use std::collections::HashMap;

use super::backward::{contains, derived_backward};
use super::check_reduced;
use crate::env::{
    Direction, DiscreteEnv, EnumerableEnv, Env, MAX_STEPS_BACK, Moves, Rows, Slots, Walked, check_counts,
    describe_move, walk_back,
};
use crate::graph::{BackwardRule, GraphArrays, GraphEnv, GraphSchema, GraphState, GraphStates, labelled_key};
use crate::{Error, Result, Rng};

/// Random walks of [`check_sampled`].
const WALKS: usize = 16;
/// States of these walks that are looked at.
const LOOKED_AT: usize = 48;
/// Those of the visited states, the smallest ones, that are looked at under other labels, too.
const RELABELLED: usize = 32;
/// Moves of each of these that are.
const MOVES: usize = 256;
/// Forward moves whose counts are compared with those of the moves back, and the pairs of states that are looked at.
const COUNTED: usize = 128;
const PAIRS: usize = 32;
/// Slots of the states whose moves are undone, and from which ways back are drawn, all together.
const SLOTS: usize = 1 << 18;

/// Checks what can be known without a state: that graphs can hold what the schema says, and slots can be numbered.
pub(crate) fn check_settings(env: &GraphEnv) -> Result<()> {
    let schema = env.schema();
    schema.check()?;
    env.actions().check()?;
    if env.actions().types().len() == 1 {
        let expected = "an action type, such as `AddEdge` (`ActionSet::with`): without one there is but one graph";
        return Err(Error::config("the action types of a graph environment", "none beside the exit", expected));
    }
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
pub(crate) fn check_by_type(env: &GraphEnv, states: &GraphStates) -> Result<()> {
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

/// Checks that the same is legal in a graph whatever its labels are, up to isomorphism; of `most` moves of each, where there are more.
pub(crate) fn check_relabelled(env: &GraphEnv, states: &GraphStates, most: usize, rng: &mut Rng) -> Result<()> {
    let Some((both, classes)) = env.symmetry().relabelled(states, rng) else { return Ok(()) };
    let n = states.len();
    for direction in [Direction::Forward, Direction::Backward] {
        let masks = env.masks(direction, &both);
        for row in 0..n {
            for (from, to, back) in [(row, n + row, true), (n + row, row, false)] {
                let apart = masks.n_legal(from).div_ceil(most).max(1);
                let legal: Vec<u32> = masks.legal_slots(from).step_by(apart).collect();
                let twins = vec![n + row; legal.len()];
                let renamed =
                    env.symmetry().translate(direction, &both, &classes, &twins, &Slots(legal.clone()), back)?;
                let Some(k) = renamed.0.iter().position(|&slot| masks.row(to).get(slot as usize) != Some(&true)) else {
                    continue;
                };
                let detail = format!(
                    "{} is legal; in the same under other labels it isn't: {}",
                    describe_move(env, direction, &both, from, legal[k]),
                    describe_move(env, direction, &both, to, renamed.0[k])
                );
                return Err(Error::contract(
                    "up to isomorphism what is legal doesn't depend on labels: leave them out of the rules (`GraphRules`), and out of \
                     the masks of action types",
                    detail,
                ));
            }
        }
    }
    Ok(())
}

/// Checks the counts of moves between some states and what they lead to, where training corrects for symmetry by them.
fn check_some_counts(env: &GraphEnv, states: &GraphStates) -> Result<()> {
    if !env.merges_isomorphic() || !env.corrects_symmetry() {
        return Ok(());
    }
    let masks = env.masks(Direction::Forward, states);
    let mut n_moves = 0;
    let few = (0..states.len()).filter(|&row| {
        let own = masks.n_legal(row);
        let fits = n_moves + own <= COUNTED;
        n_moves += if fits { own } else { 0 };
        fits
    });
    let states = states.select(&few.collect::<Vec<_>>());
    check_counts(env, &states, PAIRS)
}

/// Checks that no move gives back what moves before it took of the initial graph: it would have no way back.
pub(crate) fn check_initial_kept(env: &GraphEnv, states: &GraphStates) -> Result<()> {
    let keeps = |graph: &GraphState| contains(graph, env.initial_of(graph));
    let lacking: Vec<usize> = (0..states.len()).filter(|&row| !keeps(&states.graphs()[row])).collect();
    let states = states.select(&lacking);
    let moves = Moves::of(&env.masks(Direction::Forward, &states));
    let inner = moves.inner();
    let mut after = states.select(&inner.rows);
    env.step(Direction::Forward, &mut after, &inner.slots)?;
    let Some(k) = after.graphs().iter().position(keeps) else { return Ok(()) };
    let graph = &after.graphs()[k];
    Err(Error::contract(
        "a part of the initial graph that a move takes away doesn't come back: the way back from a graph that has all of it leads to \
         such graphs alone (start from less, and let rules say what is built first)",
        format!(
            "{} leads to {graph}, which has all of the initial graph, {}",
            describe_move(env, Direction::Forward, &states, inner.rows[k], inner.slots.0[k]),
            env.initial_of(graph)
        ),
    ))
}

/// Checks settings, and on some states of a few short random walks schema, masks, labels, counts of moves, what undoes them and ways back.
///
/// It is for once per run, so it is cheap: large graphs, whose masks cost more, take fewer steps.
pub(in crate::graph) fn check_sampled(env: &GraphEnv) -> Result<()> {
    check_settings(env)?;
    let rng = &mut Rng::seeded(0);
    let steps = (4096 / env.schema().max_nodes.max(1)).clamp(2, 16);
    let walked = Walked::draw(env, WALKS, steps, rng)?;
    let visited = walked.steps.after.graphs();
    check_instances_apart(env, visited)?;
    check_starts_apart(env)?;
    let small = smallest(env, visited);
    let apart = visited.len().div_ceil(LOOKED_AT).max(1);
    let states = GraphStates::from(visited.iter().rev().step_by(apart).cloned().collect::<Vec<_>>());
    states.graphs().iter().try_for_each(|graph| check_fits(env.schema(), graph))?;
    check_initial_kept(env, &states)?;
    check_reduced(env, &states)?;
    check_by_type(env, &states)?;
    check_relabelled(env, &small, MOVES, &mut Rng::seeded(1))?;
    let most = env.actions().most_slots(Direction::Forward, env.schema().kind, env.schema().max_nodes);
    walked.check(env, (SLOTS / most.max(1)).clamp(8, 128), rng)?;
    check_some_counts(env, &small)
}

/// A few small ones of the initial graphs and of those that were visited, no two of them equal.
fn smallest(env: &GraphEnv, visited: &[GraphState]) -> GraphStates {
    if !env.merges_isomorphic() {
        return Vec::new().into();
    }
    let initial = env.initial_graphs().iter().take(WALKS);
    let graphs: Vec<GraphState> = initial.chain(visited).cloned().collect();
    let graphs = GraphStates::from(graphs);
    let mut distinct = graphs.group().first;
    distinct.sort_by_key(|&row| (graphs.graphs()[row].n_nodes(), graphs.graphs()[row].n_edges()));
    distinct.truncate((4096 / env.schema().max_nodes.max(1)).clamp(2, RELABELLED));
    graphs.select(&distinct)
}

/// Checks that no two instances lead to the same graph: their flows and ways back differ, and a network sees the graph alone.
fn check_instances_apart(env: &GraphEnv, graphs: &[GraphState]) -> Result<()> {
    let mut seen = HashMap::new();
    for graph in graphs.iter().chain(env.initial_graphs()) {
        let other = *seen.entry(labelled_key(&graph.clone().with_instance(0))).or_insert(graph.instance());
        if other != graph.instance() {
            return Err(not_apart(other, graph.instance(), graph));
        }
    }
    Ok(())
}

/// Checks that no instance leads to where another starts, which short walks hardly find in large graphs: what contains an instance's
/// initial graph, and can be walked back to it, is a state of it. Of more than 128 instances it looks at so many.
fn check_starts_apart(env: &GraphEnv) -> Result<()> {
    const INSTANCES: usize = 128;
    const WAYS: usize = 8;
    let rng = &mut Rng::seeded(0);
    let starts = &env.initial_graphs()[..env.initial_graphs().len().min(INSTANCES)];
    for (one, other) in starts.iter().flat_map(|one| starts.iter().map(move |other| (one, other))) {
        if one.instance() == other.instance() || !contains(other, one) {
            continue;
        }
        let state = GraphStates::from(vec![other.clone().with_instance(one.instance())]);
        let goes_back = env.is_initial(&state)[0] || env.masks(Direction::Backward, &state).n_legal(0) > 0;
        if goes_back && (0..WAYS).any(|_| walk_back(env, state.clone(), MAX_STEPS_BACK, rng).is_ok()) {
            return Err(not_apart(one.instance(), other.instance(), other));
        }
    }
    Ok(())
}

fn not_apart(one: u32, other: u32, graph: &GraphState) -> Error {
    Error::contract(
        "no two instances lead to the same graph, because a network sees the graph alone",
        format!("instances {one} and {other} lead to {graph}; give their nodes other classes"),
    )
}
