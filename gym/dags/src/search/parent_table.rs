use gfn::{Error, Result, Rng};
use rayon::prelude::*;

use crate::{BayesianStructure, DagReward, LocalScore, NodeSet};

/// The largest number of nodes for which parent sets are listed, because sets are stored as 64-bit words.
const MAX_LISTED_NODES: usize = 64;
/// The largest number of parent sets that are listed, over all nodes. This many take about 200 MB.
const MAX_SETS: usize = 12_000_000;
/// The largest number of nodes for which the sums of all sets of predecessors are stored. For 20 nodes, these
/// take 84 MB and a few seconds.
const MAX_SUMMED_NODES: usize = 20;
/// The logarithm of the smallest share of the largest term that still counts in a sum. A sum over a million
/// terms that leaves out smaller ones is off by a share of at most 10^-9.
const MIN_LOG_SHARE: f64 = -35.0;

/// The permitted parent sets of each node and their terms of the log-reward, in descending order of the
/// terms.
#[derive(Clone, Debug)]
pub(super) struct ParentTable {
    sets: Vec<Vec<(u64, f64)>>,
    /// The sums of each node ([`log_sum`](Self::log_sum)), indexed by the predecessors without the bit of the
    /// node. Empty for more than 20 nodes.
    sums: Vec<Vec<f64>>,
}

impl ParentTable {
    /// Returns `true` if the parent sets that an environment permits are few enough to list them.
    pub(super) fn can_list(env: &BayesianStructure) -> bool {
        let count = env.config().count_parent_sets();
        env.n_nodes() <= MAX_LISTED_NODES && count.is_some_and(|count| count <= MAX_SETS)
    }

    /// Lists the parent sets that an environment permits, and computes their terms.
    ///
    /// # Errors
    /// [`Error::Config`] for more than 64 nodes, and for more than 12 million parent sets; [`Error::Shape`]
    /// if the reward has another number of nodes; [`Error::NonFinite`] for a term that isn't finite.
    pub(super) fn new<S: LocalScore>(env: &BayesianStructure, reward: &DagReward<S>) -> Result<Self> {
        let n = env.n_nodes();
        env.check_scores(reward.score())?;
        if !Self::can_list(env) {
            let count = env.config().count_parent_sets();
            let count = count.map_or("too many to count".into(), |count| count.to_string());
            return Err(Error::config(
                "a search over orders of nodes",
                format!("{n} nodes with {count} parent sets"),
                "at most 64 nodes and 12,000,000 parent sets: set `max_parents`, or forbid edges",
            ));
        }
        let of_node = |node: usize| {
            let parent_sets: Vec<NodeSet> = env.config().parent_sets(node).collect();
            let with_term = |parents: &NodeSet| {
                let term = reward.term(node, parents);
                if !term.is_finite() {
                    let remedy = "give a finite score of each node under each permitted set of parents";
                    return Err(Error::non_finite("a local score", node, term, remedy));
                }
                Ok((parents.bits(), term))
            };
            let mut sets = parent_sets.par_iter().map(with_term).collect::<Result<Vec<_>>>()?;
            sets.par_sort_by(|a, b| b.1.total_cmp(&a.1));
            Ok(sets)
        };
        let sets = (0..n).map(of_node).collect::<Result<Vec<_>>>()?;
        let mut sums = Vec::new();
        if n <= MAX_SUMMED_NODES {
            sums = sets.par_iter().enumerate().map(|(node, sets)| sums_within(n, node, sets)).collect();
        }
        Ok(Self { sets, sums })
    }

    pub(super) fn n_nodes(&self) -> usize {
        self.sets.len()
    }

    /// Iterates over the terms of a node whose parents are among the nodes `before`, and which aren't
    /// negligible beside the largest of them.
    fn terms(&self, node: usize, before: u64) -> impl Iterator<Item = (u64, f64)> + '_ {
        let fitting = self.sets[node].iter().filter(move |(set, _)| set & !before == 0);
        let mut largest = None;
        fitting.copied().take_while(move |(_, term)| term - *largest.get_or_insert(*term) > MIN_LOG_SHARE)
    }

    /// Returns the logarithm of the sum of a node's factors over all parent sets within `before`; minus
    /// infinity if no permitted set is within it.
    pub(super) fn log_sum(&self, node: usize, before: u64) -> f64 {
        if let Some(sums) = self.sums.get(node) {
            return sums[without_bit(node, before)];
        }
        let mut terms = self.terms(node, before);
        let Some((_, largest)) = terms.next() else { return f64::NEG_INFINITY };
        largest + (1.0 + terms.map(|(_, term)| (term - largest).exp()).sum::<f64>()).ln()
    }

    /// Draws a parent set within `before` in proportion to its factor. Returns the empty set if no permitted
    /// set is within `before`.
    pub(super) fn draw(&self, node: usize, before: u64, rng: &mut Rng) -> u64 {
        let log_sum = self.log_sum(node, before);
        let mut rest = rng.uniform();
        let mut last = 0;
        for (set, term) in self.terms(node, before) {
            last = set;
            rest -= (term - log_sum).exp();
            if rest < 0.0 {
                break;
            }
        }
        // Rounding may leave `rest` above 0 after the last set.
        last
    }
}

/// Removes a bit of a set: the bits above it move down by one place.
fn without_bit(bit: usize, set: u64) -> usize {
    let below = (1 << bit) - 1;
    (set & below | set >> 1 & !below) as usize
}

/// Computes the logarithm of the sum of a node's factors over the parent sets within each set of other nodes.
/// The nodes of the sets are added one at a time.
fn sums_within(n: usize, node: usize, sets: &[(u64, f64)]) -> Vec<f64> {
    let mut out = vec![f64::NEG_INFINITY; 1 << (n - 1)];
    for (set, term) in sets {
        out[without_bit(node, *set)] = *term;
    }
    for bit in 0..n - 1 {
        for set in (0..out.len()).filter(|set| set >> bit & 1 == 1) {
            let other = out[set ^ 1 << bit];
            let largest = out[set].max(other);
            let gap = out[set].min(other) - largest;
            if gap > MIN_LOG_SHARE {
                out[set] = largest + gap.exp().ln_1p();
            } else if largest > f64::NEG_INFINITY {
                out[set] = largest;
            }
        }
    }
    out
}
