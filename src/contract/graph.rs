//! The laws that apply only to graph environments.

use std::collections::HashMap;

use super::env::{BATCH, check_states, select_examined, visited_states};
use super::ways_back::walk_back;
use super::{Budget, Coverage};
use crate::env::{Direction, DiscreteEnv, Env, Moves, Rows, Slots, describe_move};
use crate::graph::{BackwardRule, GraphEnv, GraphState, GraphStates, check_reduced, contains, labelled_key};
use crate::{Error, Result, Rng};

/// The largest number of random relabellings with which each graph is compared.
const MAX_LABELLINGS: usize = 8;

/// Checks the laws of a graph environment: the laws that [`check_env`](super::check_env) checks, and the laws
/// that apply only to graphs. [`contract`](crate::contract) lists all laws.
///
/// ```
/// use gfn::{contract::{Budget, check_graph_env}, examples::Triangles, Rng};
/// check_graph_env(&Triangles::env(), Budget::thorough().with_walks(20), &mut Rng::seeded(0))?;
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Contract`] with the name of the law and the state that breaks it; errors of the environment's
/// `step`, and of [`Budget::watch`].
pub fn check_graph_env(env: &GraphEnv, budget: Budget<'_>, rng: &mut Rng) -> Result<Coverage> {
    let visited = visited_states(env, &budget, rng)?;
    check_starts_apart(env, &budget)?;
    check_instances_apart(env, visited.graphs())?;
    let visited = select_examined(env, visited, &budget);
    let mut labels = rng.clone();
    for rows in (0..visited.len()).collect::<Vec<_>>().chunks(BATCH) {
        let states = visited.select(rows);
        states.graphs().iter().try_for_each(|graph| env.schema().check_graph(graph))?;
        check_initial_kept(env, &states)?;
        // The fewer states are examined, the more labellings of each state are compared.
        let n_labellings = (budget.states.saturating_mul(2) / states.len()).clamp(1, MAX_LABELLINGS);
        for _ in 0..n_labellings {
            budget.call_watch()?;
            check_relabelled(env, &states, budget.total_moves(), &mut labels)?;
        }
        check_reduced(env, &states)?;
        check_by_type(env, &states)?;
    }
    let coverage = check_states(env, &visited, &budget, rng)?;
    match visited.graphs().iter().find(|graph| !env.rules().is_reachable(graph)) {
        None => Ok(coverage),
        Some(graph) => {
            Err(Error::contract("`is_reachable` holds for every graph that forward moves build", graph))
        }
    }
}

/// Checks the backward masks that the action types compute. They must equal the masks that are derived by
/// undoing each move.
fn check_by_type(env: &GraphEnv, states: &GraphStates) -> Result<()> {
    if env.backward_rule() != BackwardRule::ByType {
        return Ok(());
    }
    let masks = env.masks(Direction::Backward, states);
    let derived = env.clone().with_backward(BackwardRule::Derived).masks(Direction::Backward, states);
    for (row, graph) in states.graphs().iter().enumerate() {
        let derived = derived.row(row);
        let Some(slot) = (0..derived.len()).find(|&slot| masks.row(row)[slot] != derived[slot]) else {
            continue;
        };
        let words = env.describe(Direction::Backward, states, row, slot as u32);
        let (by_type, derived) = if derived[slot] { ("illegal", "legal") } else { ("legal", "illegal") };
        return Err(Error::contract(
            "the backward mask of an action type allows the moves that undo a legal forward move, and no \
             others",
            format!(
                "backward slot {slot} ({words}) of {graph} is {by_type} by the mask of the type, but \
                 {derived} by undoing the move; correct the backward mask of the action type, or let the \
                 masks be derived (`BackwardRule::Derived`)"
            ),
        ));
    }
    Ok(())
}

/// Checks that the legality of moves doesn't depend on labels, if graphs are compared up to isomorphism. At
/// most `max_moves` moves of each graph are checked.
fn check_relabelled(env: &GraphEnv, states: &GraphStates, max_moves: usize, rng: &mut Rng) -> Result<()> {
    let Some((both, classes)) = env.symmetry().relabelled(states, rng) else { return Ok(()) };
    let n = states.len();
    for direction in [Direction::Forward, Direction::Backward] {
        let masks = env.masks(direction, &both);
        for row in 0..n {
            for (from, to, back) in [(row, n + row, true), (n + row, row, false)] {
                let apart = masks.n_legal(from).div_ceil(max_moves.max(1)).max(1);
                let legal: Vec<u32> = masks.legal_slots(from).step_by(apart).collect();
                let twins = vec![n + row; legal.len()];
                let renamed = env.symmetry().translate(
                    direction,
                    &both,
                    &classes,
                    &twins,
                    &Slots(legal.clone()),
                    back,
                )?;
                let Some(k) =
                    renamed.0.iter().position(|&slot| masks.row(to).get(slot as usize) != Some(&true))
                else {
                    continue;
                };
                let detail = format!(
                    "{} is legal, but the same move isn't legal if the nodes of the graph have other labels: \
                     {}",
                    describe_move(env, direction, &both, from, legal[k]),
                    describe_move(env, direction, &both, to, renamed.0[k])
                );
                return Err(Error::contract(
                    "up to isomorphism the labels of nodes don't decide which moves are legal (don't use the \
                     numbers of nodes in the rules, `GraphRules`, or in the masks of action types)",
                    detail,
                ));
            }
        }
    }
    Ok(())
}

/// Checks that no move leads from a graph that lacks a part of the initial graph to a graph that contains the
/// whole initial graph. Such a move couldn't be reversed, because backward moves from a graph that contains
/// the initial graph never remove a part of it.
fn check_initial_kept(env: &GraphEnv, states: &GraphStates) -> Result<()> {
    let keeps = |graph: &GraphState| contains(graph, env.initial_of(graph));
    let lacking: Vec<usize> = (0..states.len()).filter(|&row| !keeps(&states.graphs()[row])).collect();
    let states = states.select(&lacking);
    let moves = Moves::new(&env.masks(Direction::Forward, &states));
    let inner = moves.inner();
    let mut after = states.select(&inner.rows);
    env.step(Direction::Forward, &mut after, &inner.slots)?;
    let Some(k) = after.graphs().iter().position(keeps) else { return Ok(()) };
    let graph = &after.graphs()[k];
    Err(Error::contract(
        "a part of the initial graph that a move removes is never added again, because backward moves from a \
         graph that contains the initial graph must keep it (start from a smaller graph, and let the rules \
         decide what is built first)",
        format!(
            "{} leads to {graph}, which contains the initial graph, {}, again",
            describe_move(env, Direction::Forward, &states, inner.rows[k], inner.slots.0[k]),
            env.initial_of(graph)
        ),
    ))
}

/// Checks that no two instances lead to the same graph. A network's input is only the graph, so it couldn't
/// give the graph the different flows and backward trajectories of the two instances.
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

/// Checks, for the first 128 instances, that no instance leads to the initial graph of another instance. In
/// large graphs short random walks rarely find such a case. If the initial graph of one instance contains the
/// initial graph of another instance, the check therefore samples backward walks from the larger graph to the
/// smaller graph.
fn check_starts_apart(env: &GraphEnv, budget: &Budget<'_>) -> Result<()> {
    const INSTANCES: usize = 128;
    const WALKS_BACK: usize = 8;
    let rng = &mut Rng::seeded(0);
    let starts = &env.initial_graphs()[..env.initial_graphs().len().min(INSTANCES)];
    for (one, other) in starts.iter().flat_map(|one| starts.iter().map(move |other| (one, other))) {
        if one.instance() == other.instance() || !contains(other, one) {
            continue;
        }
        let state = GraphStates::from(vec![other.clone().with_instance(one.instance())]);
        let goes_back = env.is_initial(&state)[0] || env.masks(Direction::Backward, &state).n_legal(0) > 0;
        if goes_back && (0..WALKS_BACK).any(|_| walk_back(env, state.clone(), budget, rng).is_ok()) {
            return Err(not_apart(one.instance(), other.instance(), other));
        }
    }
    Ok(())
}

fn not_apart(one: u32, other: u32, graph: &GraphState) -> Error {
    Error::contract(
        "no two instances lead to the same graph, because the graph is all that a network reads",
        format!(
            "instances {one} and {other} lead to {graph}; give the nodes of each instance different classes"
        ),
    )
}
