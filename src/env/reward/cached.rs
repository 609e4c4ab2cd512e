//! A reward that is asked about each object once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tch::Tensor;

use super::{Reward, check_count};
use crate::env::Rows;
use crate::{Error, Result};

/// Answers that are asked for a second time, to see that they stay the same.
const LOOKED_AT: usize = 16;
/// Largest difference between two answers about one object, relative to the larger of the answer and 1: what is asked with other objects in
/// its batch is rounded otherwise.
const TOLERANCE: f64 = 1e-3;

/// A reward whose answers are kept: it is asked about an object once, however often it is drawn.
///
/// It is for rewards that cost something and say the same of the same object whenever they are asked: docking, a network, a call into
/// another language. What the same object is, keys say: those of the environment, or any others. The first 16 times that a batch holds an
/// object whose answer is known, the reward is asked about it again; another answer is an error, as keeping the first would train on a
/// reward that isn't there.
///
/// At most `capacity` answers are kept; when there are so many, all are forgotten. NaN and +infinity, which no reward may say, aren't
/// kept. There is no reward of conditions to keep: under them, `ConditionedReward` of the package `gfn-extras` takes cached
/// rewards. [`log_reward_change`](Reward::log_reward_change) is the difference of two answers that are kept, even if the reward has a way
/// to it that costs less.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// use gfn::env::{Cached, Reward, Slots};
/// static ASKED: AtomicUsize = AtomicUsize::new(0);
/// let slow = |states: &Slots, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
///     ASKED.fetch_add(states.0.len(), Relaxed);
///     Ok(states.0.iter().map(|&s| f64::from(s)).collect())
/// };
/// let cached = Cached::new(slow, |states: &Slots| states.0.clone(), 1_000)?;
/// assert_eq!(cached.log_reward(&Slots(vec![3, 3, 5]), None)?, [3.0, 3.0, 5.0]);
/// assert_eq!(cached.log_reward(&Slots(vec![5, 3]), None)?, [5.0, 3.0]);
/// // Two objects, and one of them for a second time.
/// assert_eq!(ASKED.load(Relaxed), 2 + 1);
/// # Ok::<(), gfn::Error>(())
/// ```
pub struct Cached<S, K> {
    reward: Box<dyn Reward<S> + Sync>,
    keys: Keys<S, K>,
    capacity: usize,
    finished: Mutex<KnownAnswers<K>>,
    partial: Mutex<KnownAnswers<K>>,
}

/// The function that gives the key of each state.
type Keys<S, K> = Box<dyn Fn(&S) -> Vec<K> + Send + Sync>;

struct KnownAnswers<K> {
    by_key: HashMap<K, f64>,
    looked_at: usize,
}

impl<S, K> std::fmt::Debug for Cached<S, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cached").finish_non_exhaustive()
    }
}

impl<S: Rows, K: Hash + Eq + Clone + Send> Cached<S, K> {
    /// The same reward, with at most `capacity` answers kept.
    ///
    /// # Errors
    /// [`Error::Config`] for a capacity of less than 2.
    pub fn new(
        reward: impl Reward<S> + Sync + 'static,
        keys: impl Fn(&S) -> Vec<K> + Send + Sync + 'static,
        capacity: usize,
    ) -> Result<Self> {
        if capacity < 2 {
            return Err(Error::config("the capacity of a cached reward", capacity, "at least 2 answers to be kept"));
        }
        let known = || Mutex::new(KnownAnswers { by_key: HashMap::new(), looked_at: 0 });
        let (reward, keys) = (Box::new(reward), Box::new(keys));
        Ok(Self { reward, keys, capacity, finished: known(), partial: known() })
    }

    /// The answers about these states: those that are known, and of `ask` about the others. `None` where it has none.
    fn answers(
        &self,
        known: &Mutex<KnownAnswers<K>>,
        states: &S,
        ask: impl Fn(&S) -> Result<Option<Vec<f64>>>,
    ) -> Result<Option<Vec<f64>>> {
        let keys = (self.keys)(states);
        if keys.len() != states.len() {
            let remedy = "the keys of a cached reward are one for each state";
            return Err(Error::shape("the keys", [states.len() as i64], [keys.len() as i64], remedy));
        }
        // The reward is asked without the lock: it may be slow, or ask this one.
        let (mut values, again) = {
            let known = lock(known);
            let values: Vec<Option<f64>> = keys.iter().map(|key| known.by_key.get(key).copied()).collect();
            let rows: Vec<usize> = (0..values.len()).filter(|&row| values[row].is_some()).collect();
            // In turn, so that it isn't always the same object.
            let again = (known.looked_at < LOOKED_AT && !rows.is_empty()).then(|| rows[known.looked_at % rows.len()]);
            (values, again)
        };
        // Each new object once, and one that is known.
        let mut places = HashMap::new();
        let mut asked = Vec::new();
        for row in (0..keys.len()).filter(|&row| values[row].is_none()) {
            if let Entry::Vacant(place) = places.entry(&keys[row]) {
                place.insert(asked.len());
                asked.push(row);
            }
        }
        let new = asked.len();
        asked.extend(again);
        if asked.is_empty() {
            return Ok(Some(values.into_iter().flatten().collect()));
        }
        let Some(mut answers) = ask(&states.select(&asked))? else { return Ok(None) };
        check_count(&answers, asked.len())?;
        if let (Some(row), true) = (again, answers.len() > new) {
            check_same(states, row, values[row].zip(answers.pop()))?;
        }
        for (row, value) in values.iter_mut().enumerate() {
            if value.is_none() {
                *value = places.get(&keys[row]).map(|&place| answers[place]);
            }
        }
        let mut known = lock(known);
        known.looked_at += usize::from(again.is_some());
        for (&row, &answer) in asked.iter().zip(&answers).filter(|(_, answer)| **answer < f64::INFINITY) {
            if known.by_key.len() >= self.capacity {
                known.by_key.clear();
            }
            known.by_key.insert(keys[row].clone(), answer);
        }
        Ok(Some(values.into_iter().flatten().collect()))
    }
}

/// Compares two answers about one object.
fn check_same<S: Rows>(states: &S, row: usize, answers: Option<(f64, f64)>) -> Result<()> {
    match answers {
        Some((first, second)) if first != second && (first - second).abs() > TOLERANCE * first.abs().max(1.0) => {
            let object = states.describe(row).unwrap_or_else(|| "an object".into());
            Err(Error::contract(
                "a reward whose answers are kept says the same of the same object",
                format!(
                    "log R of {object} was {first}, and then {second}; don't keep its answers, or tell such objects apart"
                ),
            ))
        }
        _ => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses conditions, on which an answer would depend.
fn refuse(conditions: Option<&Tensor>) -> Result<()> {
    match conditions {
        None => Ok(()),
        Some(_) => Err(Error::config(
            "the conditions of a cached reward",
            "some",
            "none, as answers are kept by object: give cached rewards to a `ConditionedReward`, or the reward as it is",
        )),
    }
}

impl<S: Rows, K: Hash + Eq + Clone + Send> Reward<S> for Cached<S, K> {
    fn log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Vec<f64>> {
        refuse(conditions)?;
        let answers = self.answers(&self.finished, states, |new| self.reward.log_reward(new, None).map(Some))?;
        Ok(answers.unwrap_or_default())
    }

    fn partial_log_reward(&self, states: &S, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        refuse(conditions)?;
        self.answers(&self.partial, states, |new| self.reward.partial_log_reward(new, None))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::env::Slots;

    /// log R is the number over 2; `drift` is added for each object that was asked about before.
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
    fn answers_are_those_of_the_reward_and_few_are_kept() {
        let (reward, asked) = counted(0.0);
        let cached = Cached::new(reward, keys, 8).unwrap();
        let mut rng = crate::Rng::seeded(0);
        let mut drawn = 0;
        for _ in 0..400 {
            let states = Slots((0..5).map(|_| rng.below(12) as u32).collect());
            let expected: Vec<f64> = states.0.iter().map(|&s| f64::from(s) / 2.0).collect();
            assert_eq!(cached.log_reward(&states, None).unwrap(), expected);
            assert!(lock(&cached.finished).by_key.len() <= 8);
            drawn += 5;
        }
        // Of 12 objects up to 8 are known.
        let asked = asked.load(Relaxed);
        assert!((drawn / 5..drawn * 9 / 10).contains(&asked), "{asked} of {drawn}");
    }

    /// Working sets up to the capacity are never asked about again; and no more than the capacity is kept.
    #[test]
    fn as_many_as_the_capacity_are_kept() {
        for capacity in [2usize, 3, 9, 16] {
            let (reward, asked) = counted(0.0);
            let cached = Cached::new(reward, keys, capacity).unwrap();
            for _ in 0..40 {
                (0..capacity as u32).for_each(|s| drop(cached.log_reward(&Slots(vec![s]), None).unwrap()));
            }
            assert_eq!(asked.load(Relaxed), capacity + LOOKED_AT);
            for s in 0..100 {
                cached.log_reward(&Slots(vec![s % 37, s % 5]), None).unwrap();
                assert!(lock(&cached.finished).by_key.len() <= capacity, "{capacity}");
            }
        }
    }

    #[test]
    fn a_reward_that_changes_its_mind_is_refused() {
        // Seen with a new object in the batch, and without.
        for states in [vec![1, 2], vec![1]] {
            let (reward, _) = counted(0.01);
            let cached = Cached::new(reward, keys, 8).unwrap();
            cached.log_reward(&Slots(vec![1]), None).unwrap();
            let message = cached.log_reward(&Slots(states), None).unwrap_err().to_string();
            assert!(message.contains("log R of 1 was 0.5, and then 0.51"), "{message}");
        }
        // Rounding isn't another answer.
        let (reward, _) = counted(1e-5);
        let cached = Cached::new(reward, keys, 8).unwrap();
        (1..60).for_each(|s| drop(cached.log_reward(&Slots(vec![1, s]), None).unwrap()));
    }

    #[test]
    fn partial_answers_are_kept_apart_and_may_be_missing() {
        let (reward, _) = counted(0.0);
        let cached = Cached::new(reward, keys, 8).unwrap();
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
        let cached = Cached::new(Both, keys, 8).unwrap();
        for _ in 0..2 {
            assert_eq!(cached.log_reward(&Slots(vec![1, 2]), None).unwrap(), [1.0; 2]);
            assert_eq!(cached.partial_log_reward(&Slots(vec![1, 2]), None).unwrap(), Some(vec![2.0; 2]));
        }
    }

    #[test]
    fn what_no_answer_can_be_kept_of_is_an_error() {
        let (reward, _) = counted(0.0);
        assert!(Cached::new(reward, keys, 1).is_err());
        let (reward, _) = counted(0.0);
        let cached = Cached::new(reward, keys, 2).unwrap();
        let message = cached.log_reward(&Slots(vec![1]), Some(&Tensor::from(1.0))).unwrap_err().to_string();
        assert!(message.contains("conditions"), "{message}");
        let (reward, _) = counted(0.0);
        let cached = Cached::new(reward, |_: &Slots| vec![0], 2).unwrap();
        assert!(cached.log_reward(&Slots(vec![1, 2]), None).is_err());
        // A wrong number of answers, and one that no reward may give, which isn't kept; of R = 0 there is an answer.
        let short = |_: &Slots, _: Option<&Tensor>| Ok(vec![0.0]);
        assert!(Cached::new(short, keys, 2).unwrap().log_reward(&Slots(vec![1, 2]), None).is_err());
        for (value, n_kept) in [(f64::NAN, 0), (f64::INFINITY, 0), (f64::NEG_INFINITY, 1)] {
            let cached = Cached::new(move |_: &Slots, _: Option<&Tensor>| Ok(vec![value]), keys, 2).unwrap();
            for _ in 0..3 {
                let got = cached.log_reward(&Slots(vec![1]), None).unwrap();
                assert_eq!(got[0].to_bits(), value.to_bits());
            }
            assert_eq!(lock(&cached.finished).by_key.len(), n_kept);
        }
    }
}
