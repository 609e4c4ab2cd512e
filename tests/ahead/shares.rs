//! A second thread that scores a part of the states: whose gradient that is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::noted::NotedGradients;
use gfn::env::{Reward, Rows, VectorEnv, VectorRules, VectorStates};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig, Parameters};
use gfn::objective::{
    DetailedBalance, FlowMatching, LogPartitionVariance, ModifiedDetailedBalance, Objective, RegressionLoss, Scores,
    StateFlow, SubTrajectoryBalance, TrajectoryBalance, TrajectoryLikelihood, Weighting, WithBackward,
};
use gfn::policy::{Evaluation, KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::quantity::{Quantities, Quantity};
use gfn::rollout::Trajectories;
use gfn::train::{Context, FreshSource, Persist, Trainer, TrainerConfig, Wanted};
use gfn::{Error, Result, Rng};
use gfn_gym::hypergrid::HyperGrid;
use tch::{Device, Kind, Tensor};

/// Counts the states that it is asked about with gradients: a drawer asks for P_F alone.
struct Counted {
    policy: MlpPolicy<KHot>,
    scored: Arc<AtomicUsize>,
}

impl<R: VectorRules> Policy<VectorEnv<R>> for Counted {
    type Dist = <MlpPolicy<KHot> as Policy<VectorEnv<R>>>::Dist;

    fn evaluate(
        &self,
        env: &VectorEnv<R>,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<Self::Dist>> {
        if wants.has(Quantity::LogPb) {
            self.scored.fetch_add(states.len(), Ordering::Relaxed);
        }
        self.policy.evaluate(env, states, conditions, wants)
    }
    fn log_z(&self, conditions: Option<&Tensor>, n: usize) -> Option<Tensor> {
        Policy::<VectorEnv<R>>::log_z(&self.policy, conditions, n)
    }
    fn parameters(&self) -> Option<&Parameters> {
        Policy::<VectorEnv<R>>::parameters(&self.policy)
    }
}

type Grid = Trainer<VectorEnv<HyperGrid>, Counted>;

/// A trainer on a grid of more states than a message is worth, its gradients noted, and the states counted that it scores.
fn grid(
    objective: Box<dyn Objective>,
    (kind, noise): (Kind, Option<f64>),
    noted: &NotedGradients,
) -> (Grid, Arc<AtomicUsize>) {
    tch::set_num_threads(1);
    let (env, mut rng) = (HyperGrid::new(4, 8).unwrap(), Rng::seeded(1));
    let config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![16], noise, ..MlpConfig::default() },
        // What the first batch says of log Z takes another look at it, which nobody shares.
        estimators: EstimatorsConfig { initial_log_z: Some(0.0), ..EstimatorsConfig::with_flow(true) },
        backward: BackwardPolicy::SharedTorso,
        ..MlpPolicyConfig::default()
    };
    let policy = MlpPolicy::new(&env, KHot::new(4, 8), config, Device::Cpu, kind, &mut rng).unwrap();
    let scored = Arc::new(AtomicUsize::new(0));
    let policy = Counted { policy, scored: Arc::clone(&scored) };
    let config = TrainerConfig { batch: 400, ..TrainerConfig::default() };
    let trainer = Trainer::boxed(env, Box::new(Summed), policy, objective, config, rng).unwrap();
    (trainer.with_optimizer(|parameters| Ok(noted.optimizer(parameters, 0.1))).unwrap(), scored)
}

/// log R is half the sum of a point's coordinates, of every point.
struct Summed;

impl Reward<VectorStates> for Summed {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        Ok(states.rows().map(|row| row.iter().map(|&x| f64::from(x)).sum::<f64>() / 2.0).collect())
    }
    fn partial_log_reward(&self, states: &VectorStates, conditions: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        self.log_reward(states, conditions).map(Some)
    }
}

/// Gives the same trajectories at each step.
struct Again(Trajectories<VectorEnv<HyperGrid>>);

impl Persist<VectorEnv<HyperGrid>> for Again {
    fn name(&self) -> &str {
        "again"
    }
}

impl FreshSource<VectorEnv<HyperGrid>, Counted> for Again {
    fn draw(
        &mut self,
        _: Wanted,
        _: &Context<VectorEnv<HyperGrid>, Counted>,
    ) -> Result<Option<Trajectories<VectorEnv<HyperGrid>>>> {
        Ok(Some(self.0.clone()))
    }
}

/// The relative distance of the gradient with a second thread from that without, and the share of states that it scored.
fn off(make: fn() -> Box<dyn Objective>, how: (Kind, Option<f64>)) -> (f64, f64) {
    let (with, without, unused) = (NotedGradients::default(), NotedGradients::default(), NotedGradients::default());
    let ((twin, theirs), (one, own)) = (grid(make(), how, &unused), grid(make(), how, &with));
    let mut ahead = one.with_ahead(twin).unwrap();
    let before = (theirs.load(Ordering::Relaxed), own.load(Ordering::Relaxed));
    ahead.step().unwrap();
    let scored = (theirs.load(Ordering::Relaxed) - before.0, own.load(Ordering::Relaxed) - before.1);
    let share = scored.0 as f64 / (scored.0 + scored.1) as f64;
    let mut alone = grid(make(), how, &without).0.with_fresh(Again(ahead.latest().unwrap().clone())).unwrap();
    alone.step().unwrap();
    let (a, b) = (with.take().concat(), without.take().concat());
    let norm = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
    let difference: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
    assert!(a.len() == b.len() && norm(&b) > 1e-3);
    (norm(&difference) / norm(&b), share)
}

#[test]
fn the_gradient_is_that_of_one_thread_whoever_scores() {
    let objectives: [fn() -> Box<dyn Objective>; 8] = [
        || Box::new(Twice),
        || Box::new(ModifiedDetailedBalance::default()),
        || Box::new(TrajectoryBalance),
        || Box::new(LogPartitionVariance),
        || Box::new(DetailedBalance::default()),
        || Box::new(DetailedBalance { flow: StateFlow::ForwardLooking }),
        || Box::new(SubTrajectoryBalance::new(Weighting::Geometric { lambda: 0.9 }).unwrap()),
        || Box::new(WithBackward::new(TrajectoryBalance, TrajectoryLikelihood)),
    ];
    for make in objectives {
        for (kind, tolerance) in [(Kind::Float, 1e-6), (Kind::Double, 1e-14)] {
            let (off, share) = off(make, (kind, None));
            assert!(off < tolerance && (share - 0.35).abs() < 0.01, "{:?}: {off}, {share}", make());
        }
    }
}

#[test]
fn what_it_can_not_say_of_a_state_by_itself_and_what_has_noise_the_trainer_scores_alone() {
    let matching: fn() -> Box<dyn Objective> = || Box::new(FlowMatching::default());
    assert_eq!(off(matching, (Kind::Double, None)), (0.0, 0.0));
    let (_, share) = off(|| Box::new(TrajectoryBalance), (Kind::Double, Some(0.1)));
    assert_eq!(share, 0.0);
}

/// Fails at its second loss.
#[derive(Debug, Default)]
struct Failing(AtomicUsize);

impl Objective for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }
    fn needs(&self) -> Quantities {
        TrajectoryBalance.needs()
    }
    fn loss(&self, scores: &Scores, regression: RegressionLoss) -> Result<Tensor> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            1 => Err(Error::config("the second loss", "asked for", "any other")),
            _ => TrajectoryBalance.loss(scores, regression),
        }
    }
}

#[test]
fn a_step_that_fails_after_the_other_thread_has_scored_leaves_nobody_waiting() {
    let (noted, unused) = (NotedGradients::default(), NotedGradients::default());
    let make = |noted: &NotedGradients| grid(Box::new(Failing::default()), (Kind::Float, None), noted);
    let ((twin, theirs), (one, _)) = (make(&unused), make(&noted));
    let mut ahead = one.with_ahead(twin).unwrap();
    let steps: Vec<bool> = (0..4).map(|_| ahead.step().is_ok()).collect();
    assert_eq!(steps, [true, false, true, true]);
    assert_eq!((ahead.steps_done(), noted.take().len()), (3, 3));
    assert!(theirs.load(Ordering::Relaxed) > 0, "it did score");
}

/// Learns twice from each batch, the second time by parameters that the first has moved.
#[derive(Debug)]
struct Twice;

impl Objective for Twice {
    fn name(&self) -> &'static str {
        "twice"
    }
    fn needs(&self) -> Quantities {
        TrajectoryBalance.needs()
    }
    fn epochs(&self) -> usize {
        2
    }
    fn loss(&self, scores: &Scores, regression: RegressionLoss) -> Result<Tensor> {
        TrajectoryBalance.loss(scores, regression)
    }
}

#[test]
fn a_run_in_shares_is_the_same_each_time() {
    let run = || {
        let (noted, unused) = (NotedGradients::default(), NotedGradients::default());
        let make = |noted: &NotedGradients| grid(Box::new(TrajectoryBalance), (Kind::Float, None), noted);
        let ((twin, theirs), (one, _)) = (make(&unused), make(&noted));
        let mut together = one.with_ahead(twin).unwrap();
        (0..4).for_each(|_| assert!(together.step().unwrap().loss.is_finite()));
        assert!(theirs.load(Ordering::Relaxed) > 0);
        noted.take()
    };
    assert_eq!(run(), run());
}
