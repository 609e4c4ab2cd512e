use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{PoisonError, RwLock};

use gfn::{Error, Result};
use rayon::prelude::*;

use super::{LocalScore, NodeSet};

/// Nodes up to which all scores fit in a table: 16 * 2^16 numbers, 8 MiB.
const MAX_TABLE_NODES: usize = 16;
/// Scores that are computed ahead, at most.
const MAX_AHEAD: usize = 1 << 22;
/// Scores that are remembered, at most: a few hundred megabytes.
const MAX_ENTRIES: usize = 1 << 22;
const SHARDS: usize = 64;

/// A cache of scores: each node and parent set is computed once, whichever thread asks.
///
/// Scores of up to 16 nodes lie in a table, and can all be computed ahead on all threads; those of more nodes in maps
/// that threads share, up to 4 million of them.
///
/// ```
/// use gfn_dags::{Bge, BgeConfig, CachedScores, ContinuousData, LocalScore, NodeSet};
/// let rows = [[0.5, 1.0, -0.2], [-1.0, -0.5, 0.3], [0.2, 0.8, 1.1], [1.5, 0.1, -0.7], [-0.3, 0.6, 0.4]];
/// let bge = Bge::new(&ContinuousData::from_rows(&rows)?, BgeConfig::default())?;
/// let cached = CachedScores::ahead(&bge, None)?;
/// assert_eq!(cached.local_score(1, &NodeSet::EMPTY.with(2)), bge.local_score(1, &NodeSet::EMPTY.with(2)));
/// assert_eq!(cached.len(), 3 * 4);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct CachedScores<S> {
    score: S,
    /// By node and the bits of the parents; NaN where not computed ahead.
    table: Vec<f64>,
    shards: Vec<RwLock<Shard>>,
}

type Shard = HashMap<Key, f64, BuildHasherDefault<Mixed>>;

impl<S: LocalScore> CachedScores<S> {
    /// An empty cache, filled as scores are asked for.
    #[must_use]
    pub fn new(score: S) -> Self {
        Self { score, table: Vec::new(), shards: (0..SHARDS).map(|_| RwLock::default()).collect() }
    }

    /// Computes the scores of all parent sets (of at most `max_parents`) ahead, on all threads.
    ///
    /// # Errors
    /// [`Error::Config`] for more than 4 million sets: 16 nodes without a limit come to half a million, 20 nodes of at most 5
    /// parents to a third of one.
    pub fn ahead(score: S, max_parents: Option<usize>) -> Result<Self> {
        let n = score.n_nodes();
        let most = max_parents.unwrap_or(n).min(n.saturating_sub(1));
        let sets = (0..=most).try_fold(0usize, |sum, l| sum.checked_add(binomial(n - 1, l)?));
        match sets.and_then(|sets| sets.checked_mul(n)) {
            Some(sets) if sets <= MAX_AHEAD => {}
            sets => {
                return Err(Error::config(
                    "scores to compute ahead",
                    format!(
                        "{} of {n} nodes with at most {most} parents",
                        sets.map_or("more than can be counted".into(), |sets| sets.to_string())
                    ),
                    "at most 4,194,304: limit the parents, or let scores be computed as they are asked for",
                ));
            }
        }
        let mut out = Self::new(score);
        let chunks = |node: usize| {
            let others: Vec<usize> = (0..n).filter(|&other| other != node).collect();
            subsets(&others, most).par_iter().map(|set| out.score.local_score(node, set)).collect::<Vec<f64>>()
        };
        let values: Vec<Vec<f64>> = (0..n).map(chunks).collect();
        let mut table = if n <= MAX_TABLE_NODES { vec![f64::NAN; n << n] } else { Vec::new() };
        for (node, values) in values.into_iter().enumerate() {
            let others: Vec<usize> = (0..n).filter(|&other| other != node).collect();
            for (set, value) in subsets(&others, most).into_iter().zip(values) {
                if table.is_empty() {
                    out.insert(Key { node: node as u16, parents: set }, value);
                } else {
                    table[node << n | set.bits() as usize] = value;
                }
            }
        }
        out.table = table;
        Ok(out)
    }

    /// The score itself.
    #[must_use]
    pub fn score(&self) -> &S {
        &self.score
    }

    /// The number of scores that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        let in_maps: usize =
            self.shards.iter().map(|shard| shard.read().unwrap_or_else(PoisonError::into_inner).len()).sum();
        in_maps + self.table.iter().filter(|value| !value.is_nan()).count()
    }

    /// Whether nothing is remembered yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn insert(&self, key: Key, value: f64) {
        let mut shard = self.shards[key.shard()].write().unwrap_or_else(PoisonError::into_inner);
        if shard.len() < MAX_ENTRIES / SHARDS {
            shard.insert(key, value);
        }
    }
}

impl<S: LocalScore> LocalScore for CachedScores<S> {
    fn n_nodes(&self) -> usize {
        self.score.n_nodes()
    }

    fn local_score(&self, node: usize, parents: &NodeSet) -> f64 {
        if !self.table.is_empty() {
            let known = self.table[node << self.score.n_nodes() | parents.bits() as usize];
            if !known.is_nan() {
                return known;
            }
        }
        let key = Key { node: node as u16, parents: *parents };
        let known = self.shards[key.shard()].read().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        known.unwrap_or_else(|| {
            // Two threads may compute the same score at once: cheaper than to wait.
            let value = self.score.local_score(node, parents);
            self.insert(key, value);
            value
        })
    }
}

/// All subsets of up to `most` of these nodes.
fn subsets(nodes: &[usize], most: usize) -> Vec<NodeSet> {
    let mut out = vec![NodeSet::EMPTY];
    let mut last = vec![(0, NodeSet::EMPTY)];
    for _ in 0..most {
        let longer = |&(from, set): &(usize, NodeSet)| (from..nodes.len()).map(move |k| (k + 1, set.with(nodes[k])));
        last = last.iter().flat_map(longer).collect();
        out.extend(last.iter().map(|(_, set)| *set));
    }
    out
}

fn binomial(n: usize, k: usize) -> Option<usize> {
    (0..k).try_fold(1usize, |product, i| Some(product.checked_mul(n - i)? / (i + 1)))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    node: u16,
    parents: NodeSet,
}

impl Key {
    fn mixed(&self) -> u64 {
        let start = u64::from(self.node) ^ 0x51_7c_c1_b7_27_22_0a_95;
        let mixed = self
            .parents
            .words()
            .iter()
            .fold(start, |hash, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed ^ mixed >> 32
    }

    fn shard(&self) -> usize {
        (self.mixed() >> 20) as usize % SHARDS
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.mixed());
    }
}

/// A hasher that passes keys on: they are mixed already.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }
    fn write_u64(&mut self, mixed: u64) {
        self.0 = mixed;
    }
}
