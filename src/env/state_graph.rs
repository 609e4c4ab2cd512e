//! All states of an environment and the moves between them.

use std::collections::HashMap;

use super::measure::count_forms;
use super::moves::{CHUNK, Moves};
use super::topological::{is_topological, topological};
use super::{Grouping, Rows};
use crate::env::{
    Direction, EnumerableEnv, check_instances, check_listed, check_one_instance, dead_end, describe_state,
    has_more_states,
};
use crate::{Error, Result};

/// The entry of `StateGraph::children` for the exit action.
pub(crate) const EXIT: u32 = u32::MAX;

/// The number of states that are listed before `has_more_states` estimates whether the limit will be
/// exceeded. Listing fewer states takes less time than the estimate.
const ESTIMATED_FROM: usize = 20_000;

/// The state or exit to which a legal forward move leads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Child {
    /// The exit action, which finishes the object without changing the state.
    Exit,
    /// The state with this index in the state graph.
    State(usize),
}

/// All states that can be reached from the initial state, with the child of each legal forward move.
///
/// States are indexed from 0, the initial state, and parents come before their children. In an environment up
/// to isomorphism each class of isomorphic states is represented by one state. The state graph depends on
/// neither policy nor reward, so a single state graph serves all policies and rewards.
///
/// ```
/// use gfn::{env::StateGraph, policy::UniformPolicy, examples::Triangles};
/// let env = Triangles::env();
/// let graph = StateGraph::build(&env, 1_000)?;
/// assert_eq!(graph.len(), 8);
/// let sampled = graph.terminating_distribution(&env, &UniformPolicy, None)?;
/// assert!((sampled.probs[0] - 0.25).abs() < 1e-12);
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct StateGraph<E: EnumerableEnv> {
    states: E::States,
    index: HashMap<E::Key, u32>,
    /// The index of each state's first move in `children`, followed by the number of moves, `[states + 1]`.
    move_ptr: Vec<usize>,
    /// The child of each legal forward move, state by state, in the order of the slots; `EXIT` for exits.
    children: Vec<u32>,
    /// [`Symmetry::log_multiplicity`](crate::env::Symmetry::log_multiplicity) of each state in which
    /// trajectories can end, 0 for other states. `None` if every state is a different object.
    log_multiplicity: Option<Vec<f64>>,
}

impl<E: EnumerableEnv> std::fmt::Debug for StateGraph<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let moves = self.children.len();
        f.debug_struct("StateGraph")
            .field("states", &self.len())
            .field("moves", &moves)
            .finish_non_exhaustive()
    }
}

impl<E: EnumerableEnv> StateGraph<E> {
    /// Lists the states breadth first, beginning with the initial state.
    ///
    /// Time and memory grow with the number of moves and of states; 2^20 directed graphs of 5 nodes (10
    /// million moves) take seconds and about a gigabyte. After about 20,000 states the total number is
    /// estimated by random walks; if this number clearly exceeds `limit`, the error is returned at once.
    ///
    /// # Errors
    /// [`Error::TooManyStates`] beyond `limit` states. [`Error::Config`] for an environment of several
    /// instances, each of which has its own states. [`Error::Contract`] if the moves form a cycle, if a state
    /// can't end and has no legal move, or if a few random walks find two states with the same key, or a key
    /// that depends on labels.
    pub fn build(env: &E, limit: usize) -> Result<Self> {
        check_one_instance(env, "one instance; `StateGraph::build_of` lists the states of each instance")?;
        Self::build_of(env, 0, limit)
    }

    /// Lists the states of one [instance](crate::env::Env::n_instances), as [`build`](Self::build) does.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build), and [`Error::OutOfRange`] if there is no such instance.
    pub fn build_of(env: &E, instance: u32, limit: usize) -> Result<Self> {
        Self::build_watched(env, instance, limit, |_| Ok(()))
    }

    /// Lists states as [`build_of`](Self::build_of) does, and calls `watch` with the number of listed states
    /// every few thousand states. If `watch` returns an error, listing stops and returns the error. Use this
    /// method to let a user interrupt a long listing.
    ///
    /// ```
    /// use gfn::{Error, env::StateGraph, examples::Triangles};
    /// let enough = |_| Err(Error::config("states", "more", "none"));
    /// assert!(StateGraph::build_watched(&Triangles::env(), 0, 1_000, enough).is_err());
    /// ```
    ///
    /// # Errors
    /// The errors of [`build_of`](Self::build_of) and of `watch`.
    pub fn build_watched(
        env: &E,
        instance: u32,
        limit: usize,
        mut watch: impl FnMut(usize) -> Result<()>,
    ) -> Result<Self> {
        check_instances(env, &[instance])?;
        let limit = limit.min(EXIT as usize - 1);
        let states = env.initial(&[instance]);
        let index = env.keys(&states).into_iter().zip([0]).collect();
        let mut out = Self { states, index, move_ptr: vec![0], children: Vec::new(), log_multiplicity: None };
        let mut finished = vec![true];
        let mut expanded = 0;
        let mut estimated = false;
        while expanded < out.states.len() {
            watch(out.states.len())?;
            if !estimated && out.states.len() > ESTIMATED_FROM {
                estimated = true;
                if has_more_states(env, instance, limit) {
                    return Err(Error::TooManyStates { limit });
                }
            }
            expanded = out.expand(env, expanded, limit, &mut finished)?;
        }
        out.children.shrink_to_fit();
        check_listed(env, &out, instance)?;
        let mut out = if is_topological(&out.move_ptr, &out.children) { out } else { out.reordered()? };
        out.log_multiplicity = count_forms(env, &out)?;
        Ok(out)
    }

    /// Lists the children of up to `CHUNK` states from `start` on. Returns the index after the last of them.
    /// `finished[state]` is `true` for states that may lack legal moves: state 0, and ends without an exit.
    fn expand(&mut self, env: &E, start: usize, limit: usize, finished: &mut Vec<bool>) -> Result<usize> {
        let end = self.states.len().min(start + CHUNK);
        let chunk = self.states.select(&(start..end).collect::<Vec<_>>());
        let moves = Moves::new(&env.masks(Direction::Forward, &chunk));
        let inner = moves.inner();
        let keys = env.child_keys(&chunk, &inner.rows, &inner.slots)?;
        let first_child = self.children.len();
        self.children.resize(first_child + moves.rows.len(), EXIT);
        // The moves to states that weren't listed before, as indices into `inner` (the moves except exits).
        let mut new = Vec::new();
        for (k, key) in keys.into_iter().enumerate() {
            let next = self.index.len() as u32;
            let child = *self.index.entry(key).or_insert(next);
            if child == next {
                new.push(k);
            }
            self.children[first_child + inner.places[k]] = child;
        }
        if self.index.len() > limit {
            return Err(Error::TooManyStates { limit });
        }
        for row in 0..chunk.len() {
            self.move_ptr.push(first_child + moves.rows.partition_point(|&other| other <= row));
        }
        let is_stuck = |&state: &usize| self.raw_children(state).is_empty() && !finished[state];
        if let Some(state) = (start..end).find(is_stuck) {
            return Err(dead_end(env, &chunk, state - start));
        }
        if !new.is_empty() {
            let mut children = chunk.select(&new.iter().map(|&k| inner.rows[k]).collect::<Vec<_>>());
            finished.extend(env.step(Direction::Forward, &mut children, &inner.slots.select(&new))?.done);
            self.states.append(children);
        }
        Ok(end)
    }

    /// Groups the states by object ([`EnumerableEnv::objects`]).
    ///
    /// # Errors
    /// The errors of [`EnumerableEnv::objects`].
    pub fn objects(&self, env: &E) -> Result<Grouping> {
        match self.log_multiplicity {
            None => Ok(Grouping::identity(self.len())),
            Some(_) => env.objects(&self.states),
        }
    }

    /// Returns the logarithm of each state's share of a reward, which is divided equally among the states of
    /// an object. `log_rewards` holds log R of the object of each state.
    pub(crate) fn log_shares(&self, log_rewards: &[f64]) -> Vec<f64> {
        match &self.log_multiplicity {
            None => log_rewards.to_vec(),
            Some(logs) => {
                log_rewards.iter().zip(logs).map(|(log_reward, log_n)| log_reward - log_n).collect()
            }
        }
    }

    /// Checks that the states belong to `env`: state 0 must be an initial state with the same number of legal
    /// moves. Without this check a wrong environment would go unnoticed: its probabilities sum to 1, too.
    pub(crate) fn check_env(&self, env: &E) -> Result<()> {
        let first = self.states.select(&[0]);
        let n_legal = env.masks(Direction::Forward, &first).n_legal(0);
        if env.is_initial(&first)[0] && n_legal == self.raw_children(0).len() {
            return Ok(());
        }
        Err(Error::contract(
            "states are evaluated with the environment whose states were listed",
            format!(
                "the listed states start at {} with {} moves, but this environment starts at another state, \
                 or has {n_legal} moves there; list its states by `StateGraph::build`",
                describe_state(env, &first, 0),
                self.raw_children(0).len()
            ),
        ))
    }

    /// Sorts the states so that parents come before their children.
    fn reordered(self) -> Result<Self> {
        let order = topological(&self.move_ptr, &self.children)?;
        let mut place = vec![0u32; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new as u32;
        }
        let mut move_ptr = vec![0];
        let mut children = Vec::with_capacity(self.children.len());
        for &old in &order {
            let mine = &self.children[self.move_ptr[old]..self.move_ptr[old + 1]];
            children
                .extend(mine.iter().map(|&child| if child == EXIT { EXIT } else { place[child as usize] }));
            move_ptr.push(children.len());
        }
        let mut index = self.index;
        for state in index.values_mut() {
            *state = place[*state as usize];
        }
        Ok(Self { states: self.states.permute(&order), index, move_ptr, children, log_multiplicity: None })
    }

    /// Returns the number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.move_ptr.len() - 1
    }

    /// Returns `false`, because the initial state is always listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of legal forward moves of all states, exits included.
    #[must_use]
    pub fn n_moves(&self) -> usize {
        self.children.len()
    }

    /// Returns the states by index. Up to isomorphism, each state represents its isomorphism class.
    #[must_use]
    pub fn states(&self) -> &E::States {
        &self.states
    }

    /// Returns the child of each legal forward move of a state, in the order of the slots.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn children(&self, state: usize) -> impl ExactSizeIterator<Item = Child> + '_ {
        let children = self.raw_children(state).iter();
        children.map(|&child| if child == EXIT { Child::Exit } else { Child::State(child as usize) })
    }

    pub(crate) fn raw_children(&self, state: usize) -> &[u32] {
        &self.children[self.move_ptr[state]..self.move_ptr[state + 1]]
    }

    /// Returns `true` if trajectories can end in a state: by the exit, or because no move is legal.
    ///
    /// # Panics
    /// If there is no such state.
    #[must_use]
    pub fn can_end(&self, state: usize) -> bool {
        let children = self.raw_children(state);
        children.is_empty() || children.contains(&EXIT)
    }

    /// Returns the states in which trajectories can end, in ascending order.
    #[must_use]
    pub fn ends(&self) -> Vec<usize> {
        (0..self.len()).filter(|&state| self.can_end(state)).collect()
    }

    /// Returns the index of each of these states; `None` for a state that can't be reached.
    #[must_use]
    pub fn indices(&self, env: &E, states: &E::States) -> Vec<Option<usize>> {
        env.keys(states).iter().map(|key| self.index_of_key(key)).collect()
    }

    /// Returns the index of the state with this key; `None` if no listed state has this key.
    #[must_use]
    pub fn index_of_key(&self, key: &E::Key) -> Option<usize> {
        self.index.get(key).map(|&state| state as usize)
    }

    /// Iterates over ranges of at most `CHUNK` states, which callers evaluate in one call each.
    pub(crate) fn chunks(&self) -> impl DoubleEndedIterator<Item = std::ops::Range<usize>> + use<E> {
        let n = self.len();
        (0..n.div_ceil(CHUNK)).map(move |k| k * CHUNK..n.min((k + 1) * CHUNK))
    }

    /// Returns the states whose indices are in a range.
    pub(crate) fn states_of(&self, range: &std::ops::Range<usize>) -> E::States {
        self.states.select(&range.clone().collect::<Vec<_>>())
    }

    /// Returns the index of the first move of a state among the moves of all states.
    pub(crate) fn first_move(&self, state: usize) -> usize {
        self.move_ptr[state]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{Chain, Positions, Triangles};
    use crate::graph::*;
    use crate::policy::UniformPolicy;

    #[test]
    fn children_are_listed_slot_by_slot() {
        let graph = StateGraph::build(&Chain::new(4), 100).unwrap();
        assert_eq!(graph.states(), &Positions(vec![0, 1, 2, 3]));
        let children: Vec<Vec<Child>> = (0..4).map(|state| graph.children(state).collect()).collect();
        assert_eq!(children[0], [Child::State(1), Child::State(2), Child::Exit]);
        assert_eq!(children[2], [Child::State(3), Child::Exit]);
        assert_eq!(children[3], [Child::Exit]);
        assert_eq!(graph.n_moves(), 9);
        assert_eq!(graph.indices(&Chain::new(9), &Positions(vec![2, 7])), [Some(2), None]);
    }

    #[test]
    fn more_states_than_the_limit_are_refused() {
        assert_eq!(StateGraph::build(&Triangles::env(), 8).unwrap().len(), 8);
        assert!(matches!(StateGraph::build(&Triangles::env(), 7), Err(Error::TooManyStates { limit: 7 })));
    }

    /// Returns the environment of directed graphs on `n` labelled nodes, which has 2^(n (n - 1)) states.
    fn directed(n: usize) -> GraphEnv {
        let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
        GraphEnv::new(Free, actions, GraphState::with_nodes(GraphKind::Directed, n)).unwrap()
    }

    #[test]
    fn far_too_many_states_are_not_listed_up_to_the_limit() {
        let listed = |n: usize, limit: usize| {
            let mut most = 0;
            let watch = |listed| {
                most = listed;
                Ok(())
            };
            let refused = StateGraph::build_watched(&directed(n), 0, limit, watch);
            assert!(matches!(refused, Err(Error::TooManyStates { .. })));
            most
        };
        assert!(listed(8, 2_000_000) < 100_000);
        // The environment has 1,048,576 states: the estimate ends a listing with a limit of 900,000 early.
        assert!(listed(5, 900_000) < 100_000);
        // The estimate uses a fixed seed, so this result is the same in every run.
        assert!(has_more_states(&directed(5), 0, 1_000_000) && !has_more_states(&directed(5), 0, 1_048_576));
        let grown =
            ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 6)).with(AddEdge::new(1));
        let env = GraphEnv::new(Free, grown, GraphState::new(GraphKind::Undirected)).unwrap();
        let n = 1 + 1 + 2 + 4 + 11 + 34 + 156;
        assert_eq!(StateGraph::build(&env, n).unwrap().len(), n);
        assert!(!has_more_states(&env, 0, n));
    }

    /// Checks that parents come before children although breadth-first order isn't topological: a node can be
    /// attached in one step, or added without an edge and joined to the graph in a second step.
    #[test]
    fn parents_come_first_if_paths_to_a_state_differ_in_length() {
        let actions = ActionSet::new(Semantics::UpToIsomorphism)
            .with(AddNode::attached(1, 1, 3))
            .with(AddNode::free(1, 3))
            .with(AddEdge::new(1));
        let env = GraphEnv::new(Free, actions, GraphState::undirected(0)).unwrap();
        let graph = StateGraph::build(&env, 100).unwrap();
        // There is 1 graph without nodes, 1 with one node, 2 with two nodes and 4 with three nodes.
        assert_eq!(graph.len(), 1 + 1 + 2 + 4);
        for state in 0..graph.len() {
            assert!(graph.children(state).all(|child| child == Child::Exit || child > Child::State(state)));
        }
        assert_eq!(graph.indices(&env, graph.states()), (0..graph.len()).map(Some).collect::<Vec<_>>());
        let sampled = graph.terminating_distribution(&env, &UniformPolicy, None).unwrap();
        assert!((sampled.probs.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let reward = |states: &GraphStates, _: Option<&tch::Tensor>| -> Result<Vec<f64>> {
            Ok(states.graphs().iter().map(|graph| graph.n_edges() as f64).collect())
        };
        let flows = graph.exact_flows(&env, &UniformPolicy, &reward, None).unwrap();
        let target = graph.target_distribution(&reward, None).unwrap();
        assert!((flows.log_z - target.log_z).abs() < 1e-12);
    }
}
