//! Thompson sampling: each trajectory follows one head of the policy, and each head learns from a random
//! part of the batch.

use gfn::env::Env;
use gfn::policy::{MultiHead, Policy};
use gfn::rollout::{Container, Trajectories};
use gfn::tensor::index_tensor;
use gfn::train::{
    Batch, BatchRequest, BatchScores, Context, Persist, Source, SourceTraits, StepStats, TrainEnv, Trainer,
};
use gfn::{Error, Result, Rng};

/// Explores by Thompson sampling (Rector-Brooks et al., *Thompson Sampling for Improved Exploration in
/// GFlowNets*, 2023). Each trajectory follows one head of P_F, so disagreement between the heads causes
/// exploration. Thompson sampling changes which trajectories the policy learns from, but not the target
/// distribution. The trainer's policy must have several heads.
///
/// `Thompson` is a source of fresh trajectories ([`Trainer::with_fresh`]) that draws a head for each
/// trajectory. Use [`thompson_step`] for the training steps.
///
/// ```
/// use gfn::policy::{ByNumber, MlpPolicy, MlpPolicyConfig};
/// use gfn::train::{Trainer, TrainerConfig};
/// use gfn::{
///     Rng,
///     env::{Rows, VectorStates},
///     examples::word_env,
///     objective::TrajectoryBalance,
///     run::Fit,
/// };
/// use gfn_extras::explore::{Thompson, thompson_step};
/// let env = word_env(2, 2);
/// let config = MlpPolicyConfig { heads: 3, ..MlpPolicyConfig::default() };
/// let policy = MlpPolicy::tabular(&env, ByNumber::new(2, 3), config, tch::Device::Cpu, tch::Kind::Float)?;
/// let reward = |states: &VectorStates, _: Option<&tch::Tensor>| Ok(vec![0.0; states.len()]);
/// let trainer =
///     Trainer::new(env, reward, policy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(0))?;
/// let thompson = Thompson::new(trainer.policy(), 0.5)?;
/// let mut trainer = trainer.with_fresh(thompson)?;
/// Fit::new(3).run_by(&mut trainer, &mut thompson_step)?;
/// assert_eq!(trainer.steps_done(), 3);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Debug)]
pub struct Thompson {
    /// The probability that a given head learns from a given trajectory of a batch.
    share: f64,
    n_heads: usize,
    /// The random stream that chooses, for the last batch, the trajectories that each head learns from. It is
    /// split from the trainer's stream, so that a resumed run makes the same choices.
    shares_rng: Option<Rng>,
}

impl Thompson {
    /// Creates the source for the heads of a policy. Each head learns from each trajectory of a batch with
    /// the probability `share`.
    ///
    /// # Errors
    /// [`Error::Config`] for a policy with fewer than two heads, and unless `0 < share <= 1`.
    pub fn new<E: Env>(policy: &dyn Policy<E>, share: f64) -> Result<Self> {
        let n_heads = policy.heads().map_or(1, MultiHead::n_heads);
        if n_heads < 2 {
            let expected = "a policy with at least 2 heads of P_F (`MlpPolicyConfig::heads`; a policy that \
                wraps another one must forward its heads)";
            return Err(Error::config("the heads of Thompson sampling", n_heads, expected));
        }
        if !(share > 0.0 && share <= 1.0) {
            return Err(Error::config(
                "the share of a batch that a head learns from",
                share,
                "0 < share <= 1",
            ));
        }
        Ok(Self { share, n_heads, shares_rng: None })
    }

    /// Draws, for each head, the trajectories of the batch that the head learns from. A head with fewer
    /// than `min` such trajectories learns from the whole batch.
    fn draw_shares<E: Env>(&self, batch: &Trajectories<E>, min: usize) -> Result<Vec<Trajectories<E>>> {
        let missing = || {
            Error::missing(
                "a step of Thompson sampling",
                "a batch that heads have sampled",
                "get the batch from `Trainer::draw`",
            )
        };
        let mut rng = self.shares_rng.clone().ok_or_else(missing)?;
        // Random numbers are drawn trajectory by trajectory, so the result doesn't depend on the order in
        // which heads are scored.
        let mut rows = vec![Vec::new(); self.n_heads];
        for row in 0..batch.len() {
            for rows in &mut rows {
                if rng.uniform() < self.share {
                    rows.push(row);
                }
            }
        }
        let mut shares = Vec::new();
        for rows in rows {
            shares.push(batch.select(if rows.len() < min { (0..batch.len()).collect() } else { rows })?);
        }
        Ok(shares)
    }
}

/// Calls `work` once for each head in `heads`, after the policy was switched to this head. Finally switches
/// the policy back to the head that it used before.
fn with_heads<E: Env, T>(
    policy: &dyn Policy<E>,
    heads: impl Iterator<Item = usize>,
    mut work: impl FnMut(usize) -> Result<T>,
) -> Result<Vec<T>> {
    let Some(policy) = policy.heads() else {
        let rule = "`Policy::heads` returns the heads in every step";
        return Err(Error::contract(rule, "it returned heads in `Thompson::new`, but `None` in this step"));
    };
    let home = policy.head();
    let results = heads.map(|head| policy.use_head(head).and_then(|()| work(head))).collect();
    policy.use_head(home)?;
    results
}

impl<E: Env> Persist<E> for Thompson {
    fn name(&self) -> &str {
        "thompson"
    }
}

impl<E: TrainEnv> Source<E> for Thompson {
    fn traits(&self, _: &Context<E>) -> SourceTraits {
        SourceTraits { is_external: false, is_scored_in_parts: true, ..SourceTraits::default() }
    }

    fn draw(
        &mut self,
        request: BatchRequest,
        context: &Context<E>,
        rng: &mut Rng,
    ) -> Result<Option<Trajectories<E>>> {
        self.shares_rng = Some(rng.split());
        let n = request.max;
        let conditions = context.draw_conditions(n, rng)?;
        let sampler = context.sampler(&context.env, context.policy()).exploration(context.exploration()?);
        let mut rows = vec![Vec::new(); self.n_heads];
        for row in 0..n {
            rows[rng.below(self.n_heads)].push(row);
        }
        let heads = (0..rows.len()).filter(|&head| !rows[head].is_empty());
        let parts = with_heads(context.policy(), heads, |head| match &conditions {
            Some(all) => sampler
                .forward_conditional(&all.index_select(0, &index_tensor(&rows[head], all.device())), rng),
            None => sampler.forward(rows[head].len(), rng),
        })?;
        let mut parts = parts.into_iter();
        let Some(mut whole) = parts.next() else { return Ok(None) };
        whole.extend(parts)?;
        Ok(Some(whole))
    }
}

/// Makes one training step of a trainer whose fresh trajectories come from [`Thompson`]. Each head learns
/// from a random part of the batch (bootstrapping). The loss is the mean of the losses of the heads, which
/// share torso, P_B, log F and log Z. After the step, the policy uses the same head as before the step.
/// Evaluation uses this head, too.
///
/// # Errors
/// Errors of [`thompson_scores`] and of [`Trainer::step`].
pub fn thompson_step<E: TrainEnv>(trainer: &mut Trainer<E>) -> Result<StepStats> {
    check_settings(trainer)?;
    let batch = trainer.draw()?;
    let scores = thompson_scores(trainer, &batch)?;
    let loss = trainer.loss(&scores)?;
    trainer.apply(&loss, &scores)?;
    trainer.advance(batch, &scores)
}

/// Scores a batch for a custom training loop: each head scores the trajectories that it learns from. The
/// batch must be the last one that [`Trainer::draw`] returned.
///
/// # Errors
/// [`Error::Missing`] for a trainer without [`Thompson`], and for a trainer that scores a batch in chunks
/// or as single transitions; errors of [`Trainer::score`].
pub fn thompson_scores<E: TrainEnv>(trainer: &mut Trainer<E>, batch: &Batch<E>) -> Result<BatchScores> {
    check_settings(trainer)?;
    let min = trainer.context().objective.smallest_batch().max(1);
    let shares = find_thompson(trainer)?.draw_shares(&batch.trajectories, min)?;
    let home = trainer.policy().heads().map_or(0, MultiHead::head);
    let mut parts = Vec::new();
    let score_heads = || -> Result<()> {
        for (head, share) in shares.into_iter().enumerate() {
            use_head(trainer, head)?;
            parts.push(trainer.score(&mut Batch::from(share))?);
        }
        Ok(())
    };
    let scored = score_heads();
    use_head(trainer, home)?;
    scored?;
    BatchScores::join(parts)
}

fn find_thompson<E: TrainEnv>(trainer: &Trainer<E>) -> Result<&Thompson> {
    let remedy = "give the trainer `Thompson` as its source of fresh trajectories (`Trainer::with_fresh`)";
    trainer.source::<Thompson>().ok_or(Error::missing(
        "Thompson sampling",
        "a trainer that samples by heads",
        remedy,
    ))
}

/// Returns an error for settings of a trainer that prevent the heads from being scored separately.
fn check_settings<E: TrainEnv>(trainer: &Trainer<E>) -> Result<()> {
    find_thompson(trainer)?;
    let config = &trainer.context().config;
    if config.chunk.is_some() || config.transitions.is_some() {
        let missing = "whole trajectories that are scored at once, because each head scores its own";
        let remedy = "leave `TrainerConfig::chunk` and `TrainerConfig::transitions` out";
        return Err(Error::missing("Thompson sampling", missing, remedy));
    }
    Ok(())
}

fn use_head<E: Env>(trainer: &Trainer<E>, head: usize) -> Result<()> {
    trainer.policy().heads().map_or(Ok(()), |heads| heads.use_head(head))
}
