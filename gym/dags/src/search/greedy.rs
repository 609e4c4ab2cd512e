use gfn::graph::GraphState;
use gfn::{Result, Rng};

use crate::env::parent_sets;
use crate::{BayesianStructure, DagReward, GraphLaw, LocalScore, NodeSet, acyclic};

/// The smallest gain for which a change is made. Smaller gains can be rounding errors of equal scores.
const MIN_GAIN: f64 = 1e-9;

/// Climbs from several graphs to local maxima of the reward: in each step the addition, removal or reversal
/// of one edge that gains most is made, until none gains anything. Returns each maximum with its log-reward,
/// the best first.
///
/// The first start is the environment's initial graph. The other `restarts` starts are random graphs with one
/// edge per node on average, as far as the environment permits their edges.
///
/// A maximum is one graph without a probability. Use [`OrderChain`](crate::OrderChain) for the posterior.
///
/// ```
/// use gfn::Rng;
/// use gfn_dags::*;
/// let rows = [[0.5, 1.0, -0.2], [-1.0, -0.5, 0.3], [0.2, 0.8, 1.1], [1.5, 0.1, -0.7], [-0.3, 0.6, 0.4]];
/// let bge = Bge::new(&ContinuousData::from_rows(&rows)?, BgeConfig::default())?;
/// let reward = DagReward::new(CachedScores::new(bge), StructurePrior::Uniform)?;
/// let structures = BayesianStructure::new(StructureConfig::new(3))?;
/// let found = greedy_search(&structures, &reward, 3, &mut Rng::seeded(0))?;
/// let (best, _) = ExactPosterior::enumerate(structures.env(), &reward, 100)?.top(1)?;
/// assert_eq!(found[0].1, reward.log_joint(&best.graphs()[0])?);
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// # Errors
/// [`Error::Shape`](gfn::Error::Shape) if the reward has another number of nodes.
pub fn greedy_search<S: LocalScore>(
    env: &BayesianStructure,
    reward: &DagReward<S>,
    restarts: usize,
    rng: &mut Rng,
) -> Result<Vec<(GraphState, f64)>> {
    env.check_scores(reward.score())?;
    let n = env.n_nodes();
    let initial = acyclic(n, &env.config().required)?;
    let mut out = Vec::with_capacity(restarts + 1);
    for restart in 0..=restarts {
        let mut climber = Climber { env, reward, parents: parent_sets(&initial).to_vec() };
        if restart > 0 {
            let edges = (n as f64).min((n * (n - 1)) as f64 / 2.0);
            let law = GraphLaw::ErdosRenyi { edges };
            for (a, b) in law.draw(n, rng)?.edges() {
                let edge = (a as usize, b as usize);
                if climber.can_add(edge.0, edge.1) {
                    climber.parents[edge.1].insert(edge.0);
                }
            }
        }
        while climber.improve() {}
        let edges: Vec<(u32, u32)> = (0..n as u32)
            .flat_map(|b| climber.parents[b as usize].iter().map(move |a| (a as u32, b)))
            .collect();
        let graph = acyclic(n, &edges)?;
        let log_reward = reward.log_joint(&graph)?;
        out.push((graph, log_reward));
    }
    out.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(out)
}

/// A graph on its way to a local maximum.
struct Climber<'a, S> {
    env: &'a BayesianStructure,
    reward: &'a DagReward<S>,
    parents: Vec<NodeSet>,
}

impl<S: LocalScore> Climber<'_, S> {
    /// Returns `true` if an edge from `a` to `b` would be permitted, and would close no cycle.
    fn can_add(&self, a: usize, b: usize) -> bool {
        a != b
            && !self.parents[b].contains(a)
            && self.env.config().permits(a, b, &self.parents[b])
            && !self.reaches(b, a)
    }

    /// Returns `true` if a path leads from `source` to `target`.
    fn reaches(&self, source: usize, target: usize) -> bool {
        let mut above = NodeSet::EMPTY.with(target);
        let mut open = above;
        while let Some(node) = open.iter().next() {
            let new = self.parents[node].minus(above);
            open = open.without(node).union(new);
            above = above.union(new);
            if above.contains(source) {
                return true;
            }
        }
        source == target
    }

    /// Returns the gain of other parents of a node.
    fn gain(&self, node: usize, parents: &NodeSet) -> f64 {
        self.reward.term(node, parents) - self.reward.term(node, &self.parents[node])
    }

    /// Makes the change that gains most. Returns `false` if no change gains anything.
    fn improve(&mut self) -> bool {
        let n = self.parents.len();
        let mut best: (f64, Vec<(usize, NodeSet)>) = (MIN_GAIN, Vec::new());
        let mut offer = |gain: f64, change: &[(usize, NodeSet)]| {
            if gain > best.0 {
                best = (gain, change.to_vec());
            }
        };
        for (a, b) in (0..n).flat_map(|b| (0..n).map(move |a| (a, b))) {
            let parents = self.parents[b];
            if self.can_add(a, b) {
                offer(self.gain(b, &parents.with(a)), &[(b, parents.with(a))]);
            }
            if !parents.contains(a) || self.env.config().required.contains(&(a as u32, b as u32)) {
                continue;
            }
            let without = parents.without(a);
            let gain = self.gain(b, &without);
            offer(gain, &[(b, without)]);
            // The reversed edge closes a cycle if another path leads from `a` to `b`.
            let closes_cycle = without.iter().any(|parent| self.reaches(a, parent));
            if !closes_cycle && self.env.config().permits(b, a, &self.parents[a]) {
                let reversed = self.parents[a].with(b);
                offer(gain + self.gain(a, &reversed), &[(b, without), (a, reversed)]);
            }
        }
        for (node, parents) in &best.1 {
            self.parents[*node] = *parents;
        }
        !best.1.is_empty()
    }
}
