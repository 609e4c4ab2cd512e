//! A reward whose values are cached.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tch::Tensor;

use super::{Reward, check_count};
use crate::env::{Grouping, Rows};
use crate::error::check_len;
use crate::{Error, Result};

/// The number of times that a cached value is computed again, to check that the value hasn't changed.
const N_CHECKS: usize = 16;
/// The largest allowed difference between two log-rewards of one object, relative to the absolute value of
/// the first log-reward, or to 1 if 1 is larger. A network rounds values differently in batches of different
/// sizes.
const TOLERANCE: f64 = 1e-3;

/// A reward whose values are cached: it is computed once per object, however often the object is sampled.
///
/// Use this type for rewards that are slow and deterministic: docking, a network, a call into another
/// language. Objects are identified by keys, which may be the keys of the environment or custom keys. The
/// first 16 times that a batch contains a cached object, the reward of one such object is computed again. A
/// different value is an error, because the cache would hold a reward that the function no longer returns.
///
/// The cache holds at most `capacity` values, and is emptied when it is full. NaN and +infinity, which no
/// reward may return, aren't cached. Rewards that depend on conditions can't be cached; `ConditionedReward`
/// of the package `gfn-extras` combines several cached rewards instead.
/// [`log_reward_change`](Reward::log_reward_change) is always the difference of two cached values, even if
/// the wrapped reward can compute it in a cheaper way.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// use gfn::env::{CachedReward, Reward, Slots};
/// static ASKED: AtomicUsize = AtomicUsize::new(0);
/// let slow = |states: &Slots, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
///     ASKED.fetch_add(states.0.len(), Relaxed);
///     Ok(states.0.iter().map(|&s| f64::from(s)).collect())
/// };
/// let cached = CachedReward::new(slow, |states: &Slots| states.0.clone(), 1_000)?;
/// assert_eq!(cached.log_reward(&Slots(vec![3, 3, 5]), None)?, [3.0, 3.0, 5.0]);
/// assert_eq!(cached.log_reward(&Slots(vec![5, 3]), None)?, [5.0, 3.0]);
/// // Two objects, and a second computation of one of them as a check.
/// assert_eq!(ASKED.load(Relaxed), 2 + 1);
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct CachedReward<S, K> {
    reward: Box<dyn Reward<S> + Sync>,
    keys: Keys<S, K>,
    capacity: usize,
    finished: Mutex<Cache<K>>,
    partial: Mutex<Cache<K>>,
}

/// A function that returns the key of each state.
type Keys<S, K> = Box<dyn Fn(&S) -> Vec<K> + Send + Sync>;

struct Cache<K> {
    by_key: HashMap<K, f64>,
    n_checked: usize,
}

impl<S, K> std::fmt::Debug for CachedReward<S, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedReward").finish_non_exhaustive()
    }
}

impl<S: Rows, K: Hash + Eq + Clone + Send> CachedReward<S, K> {
    /// Caches at most `capacity` values of a reward.
    ///
    /// # Errors
    /// [`Error::Config`] for a capacity of less than 2.
    pub fn new(
        reward: impl Reward<S> + Sync + 'static,
        keys: impl Fn(&S) -> Vec<K> + Send + Sync + 'static,
        capacity: usize,
    ) -> Result<Self> {
        if capacity < 2 {
            return Err(Error::config(
                "the capacity of a cached reward",
                capacity,
                "at least 2 stored values",
            ));
        }
        let cache = || Mutex::new(Cache { by_key: HashMap::new(), n_checked: 0 });
        let reward = Box::new(reward);
        let keys = Box::new(keys);
        Ok(Self { reward, keys, capacity, finished: cache(), partial: cache() })
    }

    /// Returns the log-reward of each of these states: the cached log-reward, or else the log-reward that
    /// `compute` returns. Returns `None` if `compute` returns `None`.
    fn values(
        &self,
        cache: &Mutex<Cache<K>>,
        states: &S,
        compute: impl Fn(&S) -> Result<Option<Vec<f64>>>,
    ) -> Result<Option<Vec<f64>>> {
        let keys = (self.keys)(states);
        check_len(
            "the keys",
            states.len(),
            keys.len(),
            "let the function of a cached reward that computes keys return one key for each state",
        )?;
        // The lock isn't held while the reward is computed: the reward may be slow, or use this cache itself.
        let (mut values, again) = {
            let cache = lock(cache);
            let values: Vec<Option<f64>> = keys.iter().map(|key| cache.by_key.get(key).copied()).collect();
            let rows: Vec<usize> = (0..values.len()).filter(|&row| values[row].is_some()).collect();
            // `rows` lists the rows of the batch whose log-reward is cached. Each check takes the next entry
            // of this list, so that different objects are checked.
            let again =
                (cache.n_checked < N_CHECKS && !rows.is_empty()).then(|| rows[cache.n_checked % rows.len()]);
            (values, again)
        };
        // The rows to compute: each new object once, and one cached object as a check.
        let unknown: Vec<usize> = (0..keys.len()).filter(|&row| values[row].is_none()).collect();
        let new = Grouping::by_key(unknown.iter().map(|&row| &keys[row]));
        let mut rows: Vec<usize> = new.first.iter().map(|&k| unknown[k]).collect();
        let n_new = rows.len();
        rows.extend(again);
        if rows.is_empty() {
            return Ok(Some(values.into_iter().flatten().collect()));
        }
        let Some(mut computed) = compute(&states.select(&rows))? else { return Ok(None) };
        check_count(&computed, rows.len())?;
        if let (Some(row), true) = (again, computed.len() > n_new) {
            check_same(states, row, values[row].zip(computed.pop()))?;
        }
        for (&row, &place) in unknown.iter().zip(&new.group_of) {
            values[row] = Some(computed[place]);
        }
        let mut cache = lock(cache);
        cache.n_checked += usize::from(again.is_some());
        for (&row, &value) in rows.iter().zip(&computed).filter(|(_, value)| **value < f64::INFINITY) {
            if cache.by_key.len() >= self.capacity {
                cache.by_key.clear();
            }
            cache.by_key.insert(keys[row].clone(), value);
        }
        Ok(Some(values.into_iter().flatten().collect()))
    }
}

/// Returns an error if the two log-rewards of one object differ by more than `TOLERANCE`.
fn check_same<S: Rows>(states: &S, row: usize, both: Option<(f64, f64)>) -> Result<()> {
    match both {
        Some((first, second))
            if first != second && (first - second).abs() > TOLERANCE * first.abs().max(1.0) =>
        {
            let object = states.describe(row).unwrap_or_else(|| "an object".into());
            Err(Error::contract(
                "a cached reward returns the same value each time for the same object",
                format!(
                    "log R of {object} was {first}, and then {second}; use the reward without a cache, or \
                     give objects of different rewards different keys"
                ),
            ))
        }
        _ => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns an error if there are conditions, because the cached values would depend on them.
fn refuse(conditions: Option<&Tensor>) -> Result<()> {
    match conditions {
        None => Ok(()),
        Some(_) => Err(Error::config(
            "the conditions of a cached reward",
            "some",
            "none, because values are stored per object: put the cached rewards into a `ConditionedReward`, \
             or use the reward without a cache",
        )),
    }
}

impl<S: Rows, K: Hash + Eq + Clone + Send> Reward<S> for CachedReward<S, K> {
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        refuse(conditions)?;
        let values =
            self.values(&self.finished, states, |new| self.reward.log_reward(new, None).map(Some))?;
        Ok(values.unwrap_or_default())
    }

    fn partial_log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        refuse(conditions)?;
        self.values(&self.partial, states, |new| self.reward.partial_log_reward(new, None))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::env::Slots;

    /// Returns a reward of objects that are numbers, and a counter of the objects for which the reward was
    /// computed. log R of the number s is s / 2 + `drift` * (the counter before the call).
    fn counted(drift: f64) -> (impl Reward<Slots> + Sync, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let reward = move |states: &Slots, _: Option<&Tensor>| {
            let before = counter.fetch_add(states.0.len(), Relaxed) as f64;
            Ok(states.0.iter().map(|&s| f64::from(s) / 2.0 + drift * before).collect())
        };
        (reward, asked)
    }

    fn keys(states: &Slots) -> Vec<u32> {
        states.0.clone()
    }

    #[test]
    fn values_are_those_of_the_reward_and_at_most_the_capacity_is_cached() {
        let (reward, asked) = counted(0.0);
        let cached = CachedReward::new(reward, keys, 8).unwrap();
        let mut rng = crate::Rng::seeded(0);
        let mut drawn = 0;
        for _ in 0..400 {
            let states = Slots((0..5).map(|_| rng.below(12) as u32).collect());
            let expected: Vec<f64> = states.0.iter().map(|&s| f64::from(s) / 2.0).collect();
            assert_eq!(cached.log_reward(&states, None).unwrap(), expected);
            assert!(lock(&cached.finished).by_key.len() <= 8);
            drawn += 5;
        }
        // The cache holds at most 8 of the 12 objects, so some objects are computed again.
        let asked = asked.load(Relaxed);
        assert!((drawn / 5..drawn * 9 / 10).contains(&asked), "{asked} of {drawn}");
    }

    /// Checks that each object is computed only once, apart from checks of cached values, if all objects fit
    /// into the cache. Also checks that the cache never exceeds its capacity.
    #[test]
    fn the_cache_holds_up_to_its_capacity() {
        for capacity in [2usize, 3, 9, 16] {
            let (reward, asked) = counted(0.0);
            let cached = CachedReward::new(reward, keys, capacity).unwrap();
            for _ in 0..40 {
                for s in 0..capacity as u32 {
                    drop(cached.log_reward(&Slots(vec![s]), None).unwrap());
                }
            }
            assert_eq!(asked.load(Relaxed), capacity + N_CHECKS);
            for s in 0..100 {
                cached.log_reward(&Slots(vec![s % 37, s % 5]), None).unwrap();
                assert!(lock(&cached.finished).by_key.len() <= capacity, "{capacity}");
            }
        }
    }

    #[test]
    fn a_reward_that_changes_its_mind_is_refused() {
        // The change of a cached reward must be noticed with and without a new object in the batch.
        for states in [vec![1, 2], vec![1]] {
            let (reward, _) = counted(0.01);
            let cached = CachedReward::new(reward, keys, 8).unwrap();
            cached.log_reward(&Slots(vec![1]), None).unwrap();
            let message = cached.log_reward(&Slots(states), None).unwrap_err().to_string();
            assert!(message.contains("log R of 1 was 0.5, and then 0.51"), "{message}");
        }
        // A difference as small as rounding isn't an error.
        let (reward, _) = counted(1e-5);
        let cached = CachedReward::new(reward, keys, 8).unwrap();
        for s in 1..60 {
            drop(cached.log_reward(&Slots(vec![1, s]), None).unwrap());
        }
    }

    #[test]
    fn partial_values_are_cached_separately_and_may_be_missing() {
        let (reward, _) = counted(0.0);
        let cached = CachedReward::new(reward, keys, 8).unwrap();
        cached.log_reward(&Slots(vec![1]), None).unwrap();
        assert_eq!(cached.partial_log_reward(&Slots(vec![1]), None).unwrap(), None);

        struct Both;
        impl Reward<Slots> for Both {
            fn log_reward(&self, states: &Slots, _: Option<&Tensor>) -> Result<Vec<f64>> {
                Ok(vec![1.0; states.0.len()])
            }
            fn partial_log_reward(&self, states: &Slots, _: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
                Ok(Some(vec![2.0; states.0.len()]))
            }
        }
        let cached = CachedReward::new(Both, keys, 8).unwrap();
        for _ in 0..2 {
            assert_eq!(cached.log_reward(&Slots(vec![1, 2]), None).unwrap(), [1.0; 2]);
            assert_eq!(cached.partial_log_reward(&Slots(vec![1, 2]), None).unwrap(), Some(vec![2.0; 2]));
        }
    }

    #[test]
    fn rewards_that_cannot_be_cached_are_errors() {
        let (reward, _) = counted(0.0);
        assert!(CachedReward::new(reward, keys, 1).is_err());
        let (reward, _) = counted(0.0);
        let cached = CachedReward::new(reward, keys, 2).unwrap();
        let message = cached.log_reward(&Slots(vec![1]), Some(&Tensor::from(1.0))).unwrap_err().to_string();
        assert!(message.contains("conditions"), "{message}");
        let (reward, _) = counted(0.0);
        let cached = CachedReward::new(reward, |_: &Slots| vec![0], 2).unwrap();
        assert!(cached.log_reward(&Slots(vec![1, 2]), None).is_err());
        // A wrong number of values is an error. NaN and infinity aren't cached; log R = -inf (R = 0) is
        // cached.
        let short = |_: &Slots, _: Option<&Tensor>| Ok(vec![0.0]);
        assert!(CachedReward::new(short, keys, 2).unwrap().log_reward(&Slots(vec![1, 2]), None).is_err());
        for (value, n_cached) in [(f64::NAN, 0), (f64::INFINITY, 0), (f64::NEG_INFINITY, 1)] {
            let cached =
                CachedReward::new(move |_: &Slots, _: Option<&Tensor>| Ok(vec![value]), keys, 2).unwrap();
            for _ in 0..3 {
                let got = cached.log_reward(&Slots(vec![1]), None).unwrap();
                assert_eq!(got[0].to_bits(), value.to_bits());
            }
            assert_eq!(lock(&cached.finished).by_key.len(), n_cached);
        }
    }
}
