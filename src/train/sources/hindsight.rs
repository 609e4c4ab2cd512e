//! Relabelling in hindsight: replayed trajectories under other conditions.

use tch::Tensor;

use super::collect::draws_by_loss;
use crate::condition::{Conditions, Hindsight};
use crate::env::{Rows, log_rewards};
use crate::policy::Policy;
use crate::replay::Drawn;
use crate::rollout::ReplayEnv;
use crate::tensor::index_tensor;
use crate::train::Trainer;
use crate::{Error, Result};

/// A relabelling and its probability.
pub(in crate::train) struct Relabelling<S> {
    hindsight: Box<dyn Hindsight<S>>,
    share: f64,
}

impl<E: ReplayEnv, P: Policy<E>> Trainer<E, P> {
    /// Gives each trajectory drawn from the replay buffer other conditions with probability `share`, and evaluates the
    /// reward of its object again under them. The buffer isn't changed.
    ///
    /// The objects aren't new, so [`reward_calls`](Self::reward_calls) doesn't count them. An expensive reward should
    /// cache its values.
    ///
    /// # Errors
    /// [`Error::Config`] unless the share is between 0 and 1; [`Error::Missing`] without a replay buffer or without
    /// conditions.
    pub fn with_hindsight(mut self, hindsight: impl Hindsight<E::States> + 'static, share: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&share) {
            let got = share.to_string();
            return Err(Error::Config { setting: "the share of hindsight", got, expected: "a number between 0 and 1" });
        }
        if self.replay.is_none() || self.conditions.is_none() {
            return Err(Error::Missing {
                objective: "hindsight",
                needs: "a replay buffer and conditions",
                remedy: "give the trainer both before (`with_replay`, `with_conditions`)",
            });
        }
        if self.replay.as_ref().is_some_and(draws_by_loss) {
            return Err(Error::Missing {
                objective: "hindsight",
                needs: "a buffer that doesn't draw by loss: a loss under other conditions isn't that of the entry",
                remedy: "draw uniformly or by reward, or train without hindsight",
            });
        }
        self.hindsight = Some(Relabelling { hindsight: Box::new(hindsight), share });
        Ok(self)
    }

    /// The drawn entries, some of them relabelled.
    pub(in crate::train) fn in_hindsight(&mut self, mut drawn: Drawn<E>) -> Result<Drawn<E>> {
        let (Some(relabelling), Some(conditions)) = (&self.hindsight, drawn.walks.conditions()) else {
            return Ok(drawn);
        };
        let rows: Vec<usize> = (0..drawn.walks.len()).filter(|_| self.rng.uniform() < relabelling.share).collect();
        if rows.is_empty() {
            return Ok(drawn);
        }
        let at = index_tensor(&rows, conditions.device());
        let objects = drawn.walks.terminal.select(&rows);
        let others = relabelling.hindsight.relabel(&objects, &conditions.index_select(0, &at), &mut self.rng)?;
        let Conditions(others) = Conditions::checked(others, rows.len())?;
        if others.size()[1] != conditions.size()[1] {
            return Err(Error::Shape {
                what: "conditions in hindsight".into(),
                expected: vec![rows.len() as i64, conditions.size()[1]],
                got: others.size(),
                remedy: "give conditions of the width of those that the objects were found under",
            });
        }
        let rewards = log_rewards(self.reward.as_ref(), &objects, Some(&others))?;
        rows.iter().zip(rewards).for_each(|(&row, reward)| drawn.log_rewards[row] = reward);
        let others: Tensor = others.to_kind(conditions.kind()).to_device(conditions.device());
        drawn.walks.conditions = Some(Conditions(conditions.index_copy(0, &at, &others)));
        Ok(drawn)
    }
}
