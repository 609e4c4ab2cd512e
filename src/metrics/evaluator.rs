//! Who works out the figures of a policy: one alone, or a group, in shares.

use std::ops::Range;

use rand::RngCore;
use tch::{Kind, Tensor};

use crate::env::{Env, Rows};
use crate::group::{Group, Shares, hash};
use crate::policy::Policy;
use crate::rollout::{ReplayEnv, Sampler, Trajectories};
use crate::tensor::to_host;
use crate::{Error, Result, Rng};

/// Number of trajectories sampled and scored at once, by a random stream of their own.
pub(in crate::metrics) const BATCH: usize = 1024;

/// Works out exact and sampled figures of policies and rewards: alone, or as one of the members of a group, each of which does its share
/// and gets the whole.
///
/// Members share out the chunks of a listed space and the batches of samples, each batch with a random stream of its own. So a figure has
/// the same bits whoever works it out, as long as an object's reward doesn't depend on those beside it, and one thread is as good as
/// another. All members ask for the same figures, in the same order, with the same arguments; where policies, spaces, conditions or
/// random streams differ, all get an error.
///
/// [`Trainer::evaluator`](crate::train::Trainer::evaluator) is that of all replicas of a run.
///
/// ```
/// use gfn::group::replicate;
/// use gfn::{env::StateGraph, metrics::Evaluator, policy::UniformPolicy, testing::Words, Rng};
/// let (env, log_r) = (Words::new(2, 3), |words: &gfn::env::VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; gfn::env::Rows::len(words)]));
/// // All three replicas could borrow one list of the states as well.
/// let figures = replicate(3, |replica| {
///     let space = StateGraph::build(&env, 100)?;
///     let evaluator = Evaluator::of(&env).shared_by(Some(&replica));
///     let exact = evaluator.terminating_distribution(&space, &UniformPolicy, None)?;
///     Ok((exact, evaluator.estimate_log_z(&UniformPolicy, &log_r, 2_000, &mut Rng::seeded(0))?))
/// })?;
/// let space = StateGraph::build(&env, 100)?;
/// assert_eq!(figures.0, space.terminating_distribution(&env, &UniformPolicy, None)?);
/// assert_eq!(figures.1, Evaluator::of(&env).estimate_log_z(&UniformPolicy, &log_r, 2_000, &mut Rng::seeded(0))?);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct Evaluator<'a, E> {
    pub(in crate::metrics) env: &'a E,
    pub(in crate::metrics) shares: Shares<'a>,
}

impl<'a, E: Env> Evaluator<'a, E> {
    /// One that works alone.
    #[must_use]
    pub fn of(env: &'a E) -> Self {
        Self { env, shares: Shares::of(None) }
    }

    /// One of the members of a group that work together; alone for `None`.
    #[must_use]
    pub fn shared_by(mut self, group: Option<&'a dyn Group>) -> Self {
        self.shares = Shares::of(group);
        self
    }

    /// A figure of each of `n` things, such as the reward of each sample. `work` is asked for ranges of them.
    ///
    /// ```
    /// use gfn::{metrics::Evaluator, testing::Chain};
    /// let env = Chain::new(4);
    /// let halves = Evaluator::of(&env).figures(5, |range| Ok(range.map(|k| k as f64 / 2.0).collect()))?;
    /// assert_eq!(halves, [0.0, 0.5, 1.0, 1.5, 2.0]);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `work`; [`Error::Shape`] unless it gives a figure of each; those of the group.
    pub fn figures(&self, n: usize, work: impl FnMut(Range<usize>) -> Result<Vec<f64>>) -> Result<Vec<f64>> {
        self.shares.check_alike(|| Ok(vec![("number of figures", n as u64)]))?;
        self.shares.figures(n, work)
    }

    /// `n` objects that a policy samples.
    ///
    /// ```
    /// use gfn::{env::Rows, metrics::Evaluator, policy::UniformPolicy, testing::Words, Rng};
    /// let env = Words::new(2, 3);
    /// assert_eq!(Evaluator::of(&env).sample(&UniformPolicy, 1_000, &mut Rng::seeded(0))?.len(), 1_000);
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the [sampler](Sampler) and of the group.
    pub fn sample<P: Policy<E>>(&self, policy: &P, n: usize, rng: &mut Rng) -> Result<E::States>
    where
        E: ReplayEnv,
    {
        let (env, sampler) = (self.env, Sampler::new(self.env, policy));
        let alone = self.shares.size() == 1;
        let mut out = env.initial(&[]);
        self.check_samples("samples", policy, (n, rng))?;
        let (batches, mut streams) = streams(n, rng);
        let draw = |k: usize, streams: &mut [Rng]| sampler.forward(batches[k].len(), &mut streams[k]);
        if alone {
            for k in 0..batches.len() {
                out.append(draw(k, &mut streams)?.terminal_states().clone());
            }
            return Ok(out);
        }
        let work = |k: usize| tell(env, &draw(k, &mut streams)?);
        self.shares.each(batches.len(), work, |_, told| {
            out.append(hear(env, &told)?);
            Ok(())
        })?;
        Ok(out)
    }

    /// Figures of `n` samples, in batches.
    pub(in crate::metrics) fn in_batches(
        &self,
        n: usize,
        rng: &mut Rng,
        mut batch: impl FnMut(Range<usize>, &mut Rng) -> Result<Vec<f64>>,
    ) -> Result<Vec<f64>> {
        if n == 0 {
            return Err(Error::config("trajectories to estimate from", "none", "at least one"));
        }
        let (batches, mut streams) = streams(n, rng);
        let mut out = Vec::with_capacity(n);
        self.shares.each(
            batches.len(),
            |k| batch(batches[k].clone(), &mut streams[k]),
            |_, figures| {
                out.extend(figures);
                Ok(())
            },
        )?;
        Ok(out)
    }

    /// Compares policies, numbers of samples and random streams.
    pub(in crate::metrics) fn check_samples<P: Policy<E>>(
        &self,
        what: &'static str,
        policy: &P,
        (n, rng): (usize, &Rng),
    ) -> Result<()> {
        self.shares.check_alike(|| {
            let stream = rng.clone().next_u64();
            let question = hash(what.bytes().map(u64::from));
            let policy = of_policy(policy);
            Ok(vec![
                ("question", question),
                ("policy", policy),
                ("number of samples", n as u64),
                ("random stream", stream),
            ])
        })
    }
}

/// The batches of `n` samples, and the random stream of each.
fn streams(n: usize, rng: &mut Rng) -> (Vec<Range<usize>>, Vec<Rng>) {
    (0..n).step_by(BATCH).map(|start| (start..n.min(start + BATCH), rng.split())).unzip()
}

/// A hash of a policy's parameters; 0 for one that has none.
pub(in crate::metrics) fn of_policy<E: Env, P: Policy<E>>(policy: &P) -> u64 {
    let parameters = policy.parameters().into_iter().flat_map(|parameters| parameters.iter());
    hash(parameters.map(|parameter| of_tensor(&parameter.tensor)))
}

/// A hash of what a tensor holds.
pub(in crate::metrics) fn of_tensor(tensor: &Tensor) -> u64 {
    hash(to_host(&tensor.detach().reshape([-1])).into_iter().map(f64::to_bits))
}

/// Walks as numbers, to be told to others: counts, starts, instances, labels, the form of actions, actions.
fn tell<E: ReplayEnv>(env: &E, trajectories: &Trajectories<E>) -> Result<Vec<f64>> {
    let (walks, labels) = trajectories.labelled_walks(env)?;
    let actions = env.write_actions(&walks.actions);
    let form = actions.size().split_off(1);
    let counts = [walks.len(), labels.len(), form.len()].map(|count| count as f64);
    let mut out = counts.to_vec();
    out.extend(walks.offsets.iter().map(|&offset| offset as f64));
    out.extend(env.instances(&walks.terminal).into_iter().chain(labels).map(f64::from));
    out.extend(form.into_iter().map(|width| width as f64));
    // Whole numbers below 2^53 and floating-point numbers: nothing is lost.
    out.extend(to_host(&actions.to_kind(Kind::Double).reshape([-1])));
    Ok(out)
}

/// The objects that walks lead to.
fn hear<E: ReplayEnv>(env: &E, told: &[f64]) -> Result<E::States> {
    let mut rest = told;
    let mut next = |n: usize| {
        let broken = || Error::contract("members of a group tell each other walks", "one of them told something else");
        let (taken, left) = rest.split_at_checked(n).ok_or_else(broken)?;
        rest = left;
        Ok::<_, Error>(taken)
    };
    let whole = |numbers: &[f64]| numbers.iter().map(|&number| number as usize).collect::<Vec<_>>();
    let small = |numbers: &[f64]| numbers.iter().map(|&number| number as u32).collect::<Vec<_>>();
    let counts = whole(next(3)?);
    let offsets = whole(next(counts[0].saturating_add(1))?);
    let (instances, labels) = (small(next(counts[0])?), small(next(counts[1])?));
    let width: Vec<i64> = whole(next(counts[2])?).into_iter().map(|width| width as i64).collect();
    let kind = env.write_actions(&env.no_actions()).kind();
    let actions = Tensor::from_slice(rest).f_reshape([&[-1][..], &width].concat())?.to_kind(kind);
    let replayed = Trajectories::replay_of(env, &instances, &env.read_actions(&actions)?, &offsets)?;
    match labels.is_empty() {
        true => Ok(replayed.terminal_states().clone()),
        false => env.with_labels(replayed.terminal_states(), &labels),
    }
}
