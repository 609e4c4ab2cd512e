use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use gfn::{Error, Result};
use rayon::prelude::*;

use super::{LocalScore, NodeSet};
use crate::env::{count_subsets, subsets};

/// The largest number of nodes for which scores are stored in a table. For 16 nodes, the table has 16 *
/// 2^16 numbers, which take 8 MiB.
const MAX_TABLE_NODES: usize = 16;
/// The largest number of scores that are computed in advance or cached. This many scores take a few hundred
/// megabytes.
const MAX_SCORES: usize = 1 << 22;

/// A cache of scores that all threads share. The score of each pair of a node and a parent set is computed
/// once, except if two threads request it at the same time.
///
/// [`ahead`](Self::ahead) computes the scores of all parent sets in parallel, in advance. These scores are
/// stored in a table if there are at most 16 nodes. All other scores are stored in maps, up to 4 million in
/// all. A clone shares the cache and takes no time, so several rewards and trainers can use the same scores.
///
/// ```
/// use gfn_dags::{Bge, BgeConfig, CachedScores, ContinuousData, LocalScore, NodeSet};
/// let rows = [[0.5, 1.0, -0.2], [-1.0, -0.5, 0.3], [0.2, 0.8, 1.1], [1.5, 0.1, -0.7], [-0.3, 0.6, 0.4]];
/// let bge = Bge::new(&ContinuousData::from_rows(&rows)?, BgeConfig::default())?;
/// let cached = CachedScores::ahead(&bge, None)?;
/// assert_eq!(cached.local_score(1, &NodeSet::EMPTY.with(2)), bge.local_score(1, &NodeSet::EMPTY.with(2)));
/// assert_eq!(cached.len(), 3 * 4);
/// assert_eq!(cached.clone().len(), cached.len());
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct CachedScores<S>(Arc<Cache<S>>);

/// Written by hand, because the derived implementation would require `S: Clone`.
impl<S> Clone for CachedScores<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[derive(Debug)]
struct Cache<S> {
    score: S,
    /// The scores that were computed in advance, indexed by node and by the bits of the parent set. Scores
    /// that haven't been computed are NaN. The table is empty if it isn't used.
    table: Vec<f64>,
    /// The cached scores that aren't in the table: for each node, a map from parent sets to scores.
    maps: Vec<RwLock<HashMap<NodeSet, f64>>>,
}

impl<S: LocalScore> CachedScores<S> {
    /// Creates an empty cache, which is filled when scores are requested.
    #[must_use]
    pub fn new(score: S) -> Self {
        Self(Arc::new(Cache::new(score)))
    }

    /// Creates a cache and computes the scores of all parent sets in advance, on all threads. With
    /// `max_parents`, only parent sets with at most this many parents are computed.
    ///
    /// # Errors
    /// [`Error::Config`] for more than 4 million parent sets. For comparison, 16 nodes without a limit have
    /// half a million, and 20 nodes with at most 5 parents have a third of a million.
    pub fn ahead(score: S, max_parents: Option<usize>) -> Result<Self> {
        let n = score.n_nodes();
        let most = max_parents.unwrap_or(n).min(n.saturating_sub(1));
        let sets = count_subsets(n.saturating_sub(1), most).and_then(|sets| sets.checked_mul(n));
        if sets.is_none_or(|sets| sets > MAX_SCORES) {
            let count = sets.map_or("more than can be counted".into(), |sets| sets.to_string());
            let got = format!("{count} scores of {n} nodes with at most {most} parents");
            let expected = "at most 4,194,304 scores: limit the number of parents, or compute scores only \
                when they are needed";
            return Err(Error::config("scores to compute ahead", got, expected));
        }
        let mut out = Cache::new(score);
        let mut table = if n <= MAX_TABLE_NODES { vec![f64::NAN; n << n] } else { Vec::new() };
        for node in 0..n {
            let others: Vec<usize> = (0..n).filter(|&other| other != node).collect();
            let sets = subsets(&others, most);
            let values: Vec<f64> = sets.par_iter().map(|set| out.score.local_score(node, set)).collect();
            for (set, value) in sets.into_iter().zip(values) {
                if table.is_empty() {
                    out.insert(node, set, value);
                } else {
                    table[node << n | set.bits() as usize] = value;
                }
            }
        }
        out.table = table;
        Ok(Self(Arc::new(out)))
    }

    /// Returns the number of cached scores.
    #[must_use]
    pub fn len(&self) -> usize {
        let in_maps = self.0.maps.iter().map(|map| map.read().unwrap_or_else(PoisonError::into_inner).len());
        in_maps.sum::<usize>() + self.0.table.iter().filter(|value| !value.is_nan()).count()
    }

    /// Returns `true` if no score is cached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<S: LocalScore> Cache<S> {
    /// Creates an empty cache without a table.
    fn new(score: S) -> Self {
        let maps = (0..score.n_nodes()).map(|_| RwLock::default()).collect();
        Self { score, table: Vec::new(), maps }
    }

    fn insert(&self, node: usize, parents: NodeSet, value: f64) {
        let mut map = self.maps[node].write().unwrap_or_else(PoisonError::into_inner);
        if map.len() < MAX_SCORES / self.maps.len() {
            map.insert(parents, value);
        }
    }
}

impl<S: LocalScore> LocalScore for CachedScores<S> {
    fn n_nodes(&self) -> usize {
        self.0.maps.len()
    }

    fn local_score(&self, node: usize, parents: &NodeSet) -> f64 {
        let cache = &self.0;
        if !cache.table.is_empty() {
            let known = cache.table[node << cache.maps.len() | parents.bits() as usize];
            if !known.is_nan() {
                return known;
            }
        }
        let known = cache.maps[node].read().unwrap_or_else(PoisonError::into_inner).get(parents).copied();
        known.unwrap_or_else(|| {
            // Two threads may compute the same score at the same time. This is cheaper than letting a
            // thread wait.
            let value = cache.score.local_score(node, parents);
            cache.insert(node, *parents, value);
            value
        })
    }
}
