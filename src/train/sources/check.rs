//! What a trainer refuses to learn from: it would do nothing, or learn something else than was asked for.

use super::{Sources, draws_by_loss};
use crate::distribution::Exploration;
use crate::objective::Origin;
use crate::policy::Policy;
use crate::quantity::Quantity;
use crate::rollout::ReplayEnv;
use crate::train::{Context, ReplayPath};
use crate::{Error, Result};

impl<E: ReplayEnv, P: Policy<E>> Sources<E, P> {
    /// Sources whose share of a batch is 0, and shares without a source; given trajectories that are to be drawn by losses which nobody
    /// tells; ways back that nobody took for an objective that learns from the way.
    pub(super) fn check_shares(&self, context: &Context<E, P>) -> Result<()> {
        let source = context.config.source;
        let idle = |setting, got| {
            let expected = "a share above 0 (`TrainerConfig::source`) for what the trainer was given";
            Err(Error::config(setting, got, expected))
        };
        let searches = self.replay.as_ref().is_some_and(|replay| replay.search.is_some());
        match &self.data {
            Some(_) if source.offline() == 0.0 => {
                return idle("the offline share of a batch", "0 with given trajectories");
            }
            _ if searches && source.replay() == 0.0 => return idle("the replay share of a batch", "0 with a search"),
            Some(data) if draws_by_loss(&data.0) => {
                return Err(Error::config(
                    "the draw of given trajectories",
                    "one by their losses, which are never told: all would be drawn alike",
                    "a uniform draw or one by reward (`Draw`); a replay buffer (`with_replay`) is told losses",
                ));
            }
            None if source.offline() > 0.0 => {
                let remedy = "give the trainer some (`with_data`), or an offline share of 0";
                return Err(Error::missing("the offline share of a batch", "given trajectories", remedy));
            }
            _ => {}
        }
        let again = self.replay.is_some() || self.data.is_some();
        match again
            && context.objective.needs_taken_paths()
            && context.config.replay_path == ReplayPath::UniformBackward
        {
            true => Err(Error::missing(
                "an objective of P_B",
                "paths that a policy took, as uniform steps back would teach it to be uniform",
                "set `TrainerConfig::replay_path` to `ReplayPath::Stored`, or to `ReplayPath::PolicyBackward` where no paths are kept",
            )),
            false => Ok(()),
        }
    }

    /// Trajectories that the objective can't learn from.
    pub(super) fn check_origin(
        &self,
        context: &Context<E, P>,
        exploration: Exploration,
        by_average: bool,
        fresh: usize,
    ) -> Result<()> {
        let (taught, config) = (self.on_policy.teacher.is_some(), &context.config);
        let by_heads = self.on_policy.thompson.is_some();
        if taught && context.objective.needs().has(Quantity::LogPrior) {
            return Err(Error::missing(
                "an adaptive teacher",
                "an objective whose balance is one with P_B, not with a prior",
                "train the student without a teacher, or by an objective that isn't relative to a prior",
            ));
        }
        if by_heads && (taught || self.replay.as_ref().is_some_and(|replay| draws_by_loss(&replay.buffer))) {
            return Err(Error::missing(
                "Thompson sampling",
                "nobody who asks for the loss of the whole batch",
                "train it without an adaptive teacher and without a buffer that draws by loss",
            ));
        }
        if let (Some(_), Some(part)) = (&self.elsewhere, self.draws_fresh(context, by_average)) {
            return Err(Error::missing(
                part,
                "a trainer that draws its fresh trajectories itself: these come from elsewhere",
                "train without it, or without the source (`Trainer::with_fresh`)",
            ));
        }
        let off_policy = |remedy| Err(context.missing("trajectories of the policy itself", remedy));
        match context.objective.origin() {
            Origin::OnPolicy if self.elsewhere.is_some() => off_policy(
                "train by an off-policy objective: what comes from elsewhere was drawn by the policy of an earlier step",
            ),
            Origin::OnPolicy if exploration != Exploration::none() => off_policy(
                "train without exploration (epsilon 0, temperature 1, exit bias 0, noise 0), or by an off-policy objective",
            ),
            Origin::OnPolicy if by_average => {
                off_policy("keep the average for evaluation, or train by an off-policy objective")
            }
            Origin::OnPolicy if taught || by_heads => {
                off_policy("train without a teacher and without Thompson sampling, or by an off-policy objective")
            }
            Origin::OnPolicy if config.local_search.is_some() => {
                off_policy("train without local search, or by an off-policy objective")
            }
            // From the first step on, not only once the buffer is drawn from.
            Origin::OnPolicy if fresh < context.share() || self.replay.is_some() => {
                off_policy("train without replay and without given trajectories, or by an off-policy objective")
            }
            Origin::Given if fresh > 0 => Err(context.missing(
                "trajectories that aren't the policy's own",
                "give the trainer data (`with_data`) and an offline share of 1",
            )),
            _ => Ok(()),
        }
    }

    /// What has a say in how a trainer draws fresh trajectories, and would have none in those from elsewhere.
    fn draws_fresh(&self, context: &Context<E, P>, by_average: bool) -> Option<&'static str> {
        let parts = [
            (self.on_policy.teacher.is_some(), "an adaptive teacher"),
            (self.on_policy.thompson.is_some(), "Thompson sampling"),
            (by_average, "sampling by the average"),
            (context.config.local_search.is_some(), "local search"),
        ];
        parts.into_iter().find(|(there, _)| *there).map(|(_, part)| part)
    }
}
