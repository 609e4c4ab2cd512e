//! Training of several seeds by one trainer, with a policy whose parameters are stacked.

use tch::Tensor;

use super::Context;
use crate::condition::ConditionSource;
use crate::env::Env;
use crate::nn::Parameters;
use crate::objective::{Scores, checked_loss};
use crate::{Error, Result, Rng};

/// The source of the conditions of a batch of several seeds: the index of each trajectory's seed. Each seed
/// gets an equal share of the trajectories, in the order of the seeds.
struct SeedShares {
    n_seeds: usize,
}

impl ConditionSource for SeedShares {
    fn draw(&self, n: usize, _: &mut Rng) -> Result<Tensor> {
        let seeds: Vec<f32> = (0..n).map(|i| (i * self.n_seeds / n) as f32).collect();
        Ok(Tensor::from_slice(&seeds).view([n as i64, 1]))
    }
}

impl<E: Env> Context<E> {
    /// Returns the number of seeds whose policies are stacked in the policy; `None` for a single policy.
    pub(super) fn n_seeds(&self) -> Option<usize> {
        self.policy.parameters().and_then(Parameters::n_stacked)
    }

    /// Divides each batch among the seeds of the policy. Does nothing for a single policy.
    ///
    /// # Errors
    /// [`Error::Config`] for a batch that can't be divided into equal shares, and for shares that are too
    /// small for the objective; [`Error::Missing`] for updates on single transitions or minibatches.
    pub(super) fn share_among_seeds(&mut self) -> Result<()> {
        let Some(n_seeds) = self.n_seeds() else { return Ok(()) };
        let smallest = self.objective.smallest_batch();
        let batch = self.config.batch;
        if !batch.is_multiple_of(n_seeds) || batch / n_seeds < smallest {
            return Err(Error::config(
                "batch",
                format!("{batch} trajectories for {n_seeds} seeds"),
                "a multiple of the number of seeds, and at least one trajectory per seed (two if the \
                 objective compares trajectories)",
            ));
        }
        if self.config.transitions.is_some() {
            let remedy = "leave `TrainerConfig::transitions` out, because the transitions of several seeds \
                would be drawn in unequal shares";
            return Err(Error::missing("a policy of several seeds", "updates on whole trajectories", remedy));
        }
        if self.objective.n_minibatches() > 1 {
            let remedy = "set `n_minibatches` to 1, or train each seed with a policy of its own";
            return Err(Error::missing("a policy of several seeds", "updates on whole batches", remedy));
        }
        self.conditions = Some(Box::new(SeedShares { n_seeds }));
        Ok(())
    }

    /// Returns the loss of scores. With several seeds the loss is the sum of the losses of their shares, so
    /// that the gradient of each seed's parameters is that of a run with this seed alone.
    pub(super) fn loss(&self, scores: &Scores) -> Result<Tensor> {
        let loss = |scores: &Scores| checked_loss(self.objective.as_ref(), scores, &self.config.regression);
        let Some(n_seeds) = self.n_seeds() else { return loss(scores) };
        let mut losses = Vec::with_capacity(n_seeds);
        for share in scores.split_by_seed(n_seeds)? {
            losses.push(loss(&share)?.view(-1));
        }
        let losses = Tensor::cat(&losses, 0);
        Ok(losses.sum(losses.kind()))
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;
    use crate::env::{VectorEnv, VectorStates};
    use crate::examples::word_env;
    use crate::nn::{BackwardPolicy, EstimatorsConfig};
    use crate::objective::{
        DetailedBalance, FlowMatching, LogPartitionVariance, Objective, ProximalPolicy, SubTrajectoryBalance,
        TrajectoryBalance, Weighting,
    };
    use crate::optim::{AdamConfig, Sgd, SgdConfig};
    use crate::policy::{KHot, MlpPolicy, MlpPolicyConfig};
    use crate::rollout::{Container, Trajectories};
    use crate::tensor::{log_sum_exp, to_host};
    use crate::train::{Batch, Trainer, TrainerConfig};

    const SEEDS: usize = 3;
    /// The number of trajectories per seed and step.
    const BATCH: usize = 4;

    fn rngs() -> Vec<Rng> {
        (0..SEEDS as u64).map(Rng::seeded).collect()
    }

    fn stack(env: &VectorEnv, config: &MlpPolicyConfig) -> Result<MlpPolicy<KHot>> {
        let features = KHot::new(3, 3);
        MlpPolicy::stacked(env, features, config.clone(), Device::Cpu, Kind::Float, &mut rngs())
    }

    fn conditions(seeds: &[f32]) -> Tensor {
        Tensor::from_slice(seeds).view([-1, 1])
    }

    fn reward(words: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(words.rows().map(|word| word.iter().filter(|&&letter| letter == 2).count() as f64).collect())
    }

    fn trainer(
        policy: MlpPolicy<KHot>,
        objective: Box<dyn Objective>,
        n_seeds: usize,
        change: impl Fn(&mut TrainerConfig),
    ) -> Result<Trainer<VectorEnv>> {
        let adam = AdamConfig { lr: 1e-2, eps: 1e-4, ..AdamConfig::default() };
        let mut config = TrainerConfig { batch: n_seeds * BATCH, adam, ..TrainerConfig::default() };
        change(&mut config);
        Trainer::new(word_env(2, 3), reward, policy, objective, config, Rng::seeded(7))
    }

    /// Joins the trajectories of all seeds. `conditions` are the conditions of the joined trajectories.
    fn join(batches: &[Batch<VectorEnv>], conditions: Tensor) -> Batch<VectorEnv> {
        let mut all: Trajectories<VectorEnv> = batches[0].trajectories.clone();
        all.extend(batches[1..].iter().map(|batch| batch.trajectories.clone())).unwrap();
        Batch::from(all.with_conditions(conditions).unwrap())
    }

    /// Returns the indices of the seeds of a batch, in order.
    fn shares() -> Vec<f32> {
        (0..SEEDS * BATCH).map(|i| (i / BATCH) as f32).collect()
    }

    /// Trains three seeds alone and together on the same trajectories, in 20 steps.
    fn train_both(objective: impl Fn() -> Box<dyn Objective>, chunk: Option<usize>) {
        let env = word_env(2, 3);
        let config = MlpPolicyConfig::stackable(BackwardPolicy::Separate, &[8, 6]);
        let unchunked = |_: &mut TrainerConfig| ();
        let single = |rng: &mut Rng| {
            MlpPolicy::new(&env, KHot::new(3, 3), config.clone(), Device::Cpu, Kind::Float, rng).unwrap()
        };
        let build = |policy| trainer(policy, objective(), 1, unchunked).unwrap();
        let mut alone: Vec<_> = rngs().iter_mut().map(single).map(build).collect();
        let policy = stack(&env, &config).unwrap();
        let mut together = trainer(policy, objective(), SEEDS, |config| config.chunk = chunk).unwrap();
        let parameters = |trainer: &Trainer<VectorEnv>| -> Vec<Tensor> {
            trainer.policy().parameters().unwrap().iter().map(|p| p.tensor.copy().detach()).collect()
        };
        let initial = parameters(&together);
        for _ in 0..20 {
            let mut sum = 0.0;
            let mut batches = Vec::new();
            for trainer in &mut alone {
                let mut batch = trainer.draw().unwrap();
                let scores = trainer.score(&mut batch).unwrap();
                let loss = trainer.loss(&scores).unwrap();
                sum += loss.double_value(&[]);
                trainer.apply(&loss, &scores).unwrap();
                batches.push(Batch::from(batch.trajectories.clone()));
                trainer.advance(batch, &scores).unwrap();
            }
            let mut batch = join(&batches, conditions(&shares()));
            let scores = together.score(&mut batch).unwrap();
            let loss = together.loss(&scores).unwrap();
            assert!((loss.double_value(&[]) - sum).abs() < 1e-4 * sum.abs().max(1.0), "{loss} {sum}");
            together.apply(&loss, &scores).unwrap();
            together.advance(batch, &scores).unwrap();
        }
        let distance = |a: &Tensor, b: &Tensor| (a - b).abs().max().double_value(&[]);
        let alone: Vec<Vec<Tensor>> = alone.iter().map(parameters).collect();
        let mut moved = 0;
        for (i, trained) in parameters(&together).iter().enumerate() {
            let expected: Vec<&Tensor> = alone.iter().map(|parameters| &parameters[i]).collect();
            assert!(distance(trained, &Tensor::stack(&expected, 0)) < 1e-5, "{:?}, {i}", objective());
            moved += usize::from(distance(trained, &initial[i]) > 1e-2);
        }
        // Words have one parent each, so P_B has no gradient; log Z doesn't move with every objective.
        assert!(moved >= 6, "only {moved} parameters changed, of the six of P_F");
    }

    #[test]
    fn each_seed_is_updated_as_if_it_were_trained_alone() {
        train_both(|| Box::new(TrajectoryBalance), None);
        train_both(|| Box::new(TrajectoryBalance), Some(10));
        train_both(|| Box::new(LogPartitionVariance), None);
        train_both(|| Box::new(DetailedBalance::default()), None);
        let lambda = Weighting::Geometric { lambda: 0.9 };
        train_both(move || Box::new(SubTrajectoryBalance::new(lambda).unwrap()), None);
    }

    /// Checks that the first step sets log Z of each seed to the estimate from the seed's share of the batch.
    #[test]
    fn log_z_of_each_seed_starts_at_the_estimate_from_its_share() {
        let env = word_env(2, 3);
        let config =
            MlpPolicyConfig { estimators: EstimatorsConfig::default(), ..MlpPolicyConfig::default() };
        let policy = stack(&env, &config).unwrap();
        let mut trainer = trainer(policy, Box::new(TrajectoryBalance), SEEDS, |_| ()).unwrap();
        let mut batch = trainer.draw().unwrap();
        let weights = trainer.score(&mut batch).unwrap().detached().log_weights(1.0);
        let log_z = to_host(&trainer.policy().log_z(Some(&conditions(&[0.0, 1.0, 2.0])), 3).unwrap());
        for (share, got) in weights.chunks(BATCH).zip(&log_z) {
            let expected = log_sum_exp(share.iter().copied()) - (BATCH as f64).ln();
            assert!((got - expected).abs() < 1e-4, "{got} {expected}");
        }
        assert!((log_z[0] - log_z[1]).abs() > 1e-3 && (log_z[1] - log_z[2]).abs() > 1e-3, "{log_z:?}");
    }

    #[test]
    fn batches_without_equal_shares_in_order_are_refused() {
        let env = word_env(2, 3);
        let policy = || stack(&env, &MlpPolicyConfig::stackable(BackwardPolicy::SharedTorso, &[8])).unwrap();
        let build = |objective: Box<dyn Objective>, change: fn(&mut TrainerConfig)| {
            trainer(policy(), objective, SEEDS, change)
        };
        let mut together = build(Box::new(TrajectoryBalance), |_| ()).unwrap();
        let drawn = together.draw().unwrap();
        let given = drawn.trajectories.conditions().map(to_host).unwrap();
        assert_eq!(given, shares().into_iter().map(f64::from).collect::<Vec<_>>());
        let error = |trainer: &mut Trainer<VectorEnv>, seeds: Vec<f32>| {
            let mut batch = join(std::slice::from_ref(&drawn), conditions(&seeds));
            let scores = trainer.score(&mut batch)?;
            trainer.loss(&scores).map(drop)
        };
        error(&mut together, shares()).unwrap();
        let mut mixed = shares();
        mixed.swap(0, BATCH);
        for (seeds, part) in
            [(mixed, "in the order of the seeds"), (vec![3.0; SEEDS * BATCH], "index of a seed")]
        {
            let message = error(&mut together, seeds).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let mut together = build(Box::<FlowMatching>::default(), |_| ()).unwrap();
        let message = together.step().unwrap_err().to_string();
        assert!(message.contains("flow matching"), "{message}");
        // Trainers that can't share their batches, or would mix the seeds' gradients.
        let built = [
            build(Box::new(TrajectoryBalance), |config| config.batch = 10),
            build(Box::new(TrajectoryBalance), |config| config.adam.max_norm = Some(1.0)),
            build(Box::new(LogPartitionVariance), |config| config.batch = SEEDS),
        ];
        assert!(built.iter().all(|built| matches!(built, Err(Error::Config { .. }))));
        let split = ProximalPolicy { n_minibatches: 2, ..ProximalPolicy::default() };
        let split = build(Box::new(split), |_| ()).unwrap_err().to_string();
        assert!(split.contains("n_minibatches"), "{split}");
        let clipped = Sgd::new(policy().parameters(), SgdConfig::default());
        assert!(matches!(clipped, Err(Error::Config { .. })));
    }
}
