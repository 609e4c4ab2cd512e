//! Tests of the contract of continuous environments, for the box in both geometries and for the line: steps
//! and their reverses, backward trajectories, every objective, errors, and runs that resume bit for bit.

use gfn::distribution::{Distribution, Exploration};
use gfn::env::{Direction, Env, Reals, Reward, Rows};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use gfn::objective::Quantities;
use gfn::objective::score;
use gfn::objective::{
    DetailedBalance, LogPartitionVariance, Objective, StateFlow, SubTrajectoryBalance, TrajectoryBalance,
    Weighting,
};
use gfn::policy::Policy;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::ReplayEnv;
use gfn::rollout::Sampler;
use gfn::rollout::Trajectories;
use gfn::train::{ReplayPath, Trainer, TrainerConfig};
use gfn::{Error, Rng};
use gfn_gym::boxes::{
    BetaMixtures, BoxDist, BoxEnv, BoxPolicy, BoxPolicyConfig, BoxReward, Coupling, GridHistogram,
};
use gfn_gym::line::{Line, LinePolicy, LinePolicyConfig, LineReward};
use tch::{Device, Kind, Tensor};

fn boxes() -> Vec<BoxEnv> {
    let cartesian = |ndim, delta| BoxEnv::cartesian(ndim, delta).unwrap();
    let polar = |delta| BoxEnv::polar(delta).unwrap();
    vec![cartesian(1, 0.3), cartesian(2, 0.1), cartesian(3, 0.25), polar(0.1), polar(0.25)]
}

fn box_policy(env: &BoxEnv, backward: BackwardPolicy, coupling: Coupling, seed: u64) -> BoxPolicy {
    let learned = BoxPolicyConfig::default();
    let config = BoxPolicyConfig {
        mlp: MlpConfig { hidden: vec![32], ..MlpConfig::default() },
        mixtures: BetaMixtures { coupling, components: 4, ..learned.mixtures },
        backward,
        estimators: EstimatorsConfig::with_flow(true),
    };
    BoxPolicy::new(env, config, Device::Cpu, Kind::Double, &mut Rng::seeded(seed)).unwrap()
}

fn line_policy(env: &Line, backward: BackwardPolicy) -> LinePolicy {
    let config = LinePolicyConfig {
        mlp: MlpConfig { hidden: vec![32], ..MlpConfig::default() },
        backward,
        estimators: EstimatorsConfig::with_flow(true),
        ..LinePolicyConfig::default()
    };
    LinePolicy::new(env, config, Device::Cpu, Kind::Double, &mut Rng::seeded(3)).unwrap()
}

/// Takes all actions of a batch of trajectories, and checks that their reverses restore the states bit for
/// bit.
fn check_steps<E: ReplayEnv<States = Reals, Actions = Reals>>(env: &E, trajectories: &Trajectories<E>) {
    let states = trajectories.states();
    env.check_actions(states, trajectories.actions()).unwrap();
    let mut after = states.clone();
    let step = env.step(Direction::Forward, &mut after, trajectories.actions()).unwrap();
    assert_eq!(step.exit, trajectories.is_exit());
    let moved: Vec<usize> = (0..states.len()).filter(|&row| !step.exit[row]).collect();
    let mut back = after.select(&moved);
    assert!(env.is_initial(&back).iter().all(|initial| !initial));
    let undone = env.step(Direction::Backward, &mut back, &step.reverse.select(&moved)).unwrap();
    assert_eq!(back, states.select(&moved));
    assert_eq!(undone.done, env.is_initial(&back));
    assert_eq!(trajectories.reverse_actions().select(&moved), step.reverse.select(&moved));

    let starts = states.select(&trajectories.offsets()[..trajectories.len()]);
    assert!(env.is_initial(&starts).iter().all(|initial| *initial));

    // Actions that are written to a tensor must be readable again, and their replay must give exactly the
    // same states.
    let written = env.write_actions(trajectories.actions());
    let actions = env.read_actions(&written).unwrap();
    assert_eq!(&actions, trajectories.actions());
    assert!(env.read_actions(&written.to_kind(Kind::Float)).is_err());
    let replayed = Trajectories::replay(env, &actions, trajectories.offsets()).unwrap();
    assert_eq!(replayed.states(), states);
    assert_eq!(replayed.terminal_states(), trajectories.terminal_states());

    // The backward steps that `way_back` returns must exist in every state and lead to the initial state.
    let mut states = trajectories.terminal_states().clone();
    for steps in 0.. {
        let initial = env.is_initial(&states);
        let going: Vec<usize> = (0..states.len()).filter(|&row| !initial[row]).collect();
        if going.is_empty() {
            break;
        }
        assert!(steps < 100, "a way back of more than 100 steps");
        states = states.select(&going);
        let actions = env.way_back(&states).unwrap();
        assert_eq!(actions, env.way_back(&states).unwrap());
        env.step(Direction::Backward, &mut states, &actions).unwrap();
    }
    assert!(env.way_back(&env.initial(&[0])).is_err());
}

/// Checks that trajectories sampled forwards and backwards keep the contract, and that scores, losses and
/// gradients are finite.
fn check<E>(env: &E, policy: &dyn Policy<E>, reward: &impl Reward<Reals>, partial: bool)
where
    E: ReplayEnv<States = Reals, Actions = Reals>,
{
    let rng = &mut Rng::seeded(5);
    let bias = if env.exit_actions(&env.initial(&[0])).is_some() { -1.0 } else { 0.0 };
    let explored =
        Exploration::epsilon(0.3).unwrap().with_temperature(2.0).unwrap().with_exit_bias(bias).unwrap();
    let forward = Sampler::new(env, policy).exploration(explored).forward(200, rng).unwrap();
    check_steps(env, &forward);
    check_steps(env, &Sampler::new(env, &env.uniform()).forward(200, rng).unwrap());
    let backward = Sampler::new(env, policy).backward(forward.terminal_states(), rng).unwrap();
    assert_eq!(backward.terminal_states(), forward.terminal_states());
    check_steps(env, &backward);

    let geometric = SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap();
    let mut objectives: Vec<Box<dyn Objective>> = vec![
        Box::new(TrajectoryBalance),
        Box::new(LogPartitionVariance),
        Box::new(DetailedBalance::default()),
        Box::new(geometric),
    ];
    if partial {
        objectives.push(Box::new(DetailedBalance { flow: StateFlow::ForwardLooking }));
        objectives.push(Box::new(geometric.with_flow(StateFlow::ForwardLooking)));
    }
    for trajectories in [&forward, &backward] {
        for objective in &objectives {
            let scores = score(env, reward, policy, trajectories, objective.needs()).unwrap();
            assert!(scores.log_pf.isfinite().all().int64_value(&[]) == 1);
            assert!(scores.log_pb.isfinite().all().int64_value(&[]) == 1);
            let loss = objective.loss(&scores, &gfn::objective::Regression::default()).unwrap();
            loss.backward();
            assert!(loss.double_value(&[]).is_finite());
            let parameters = policy.parameters().unwrap();
            let norm = |grad: Tensor| {
                if grad.defined() { grad.square().sum(Kind::Double).double_value(&[]) } else { 0.0 }
            };
            let total: f64 = parameters.iter().map(|p| norm(p.tensor.grad())).sum();
            assert!(total.is_finite() && total > 0.0, "{objective:?}");
            for p in parameters {
                p.tensor.shallow_clone().zero_grad();
            }
        }
    }
}

#[test]
fn the_box_keeps_its_contract() {
    use BackwardPolicy::{Separate, SharedTorso, Uniform};
    for env in boxes() {
        for (backward, coupling) in
            [(SharedTorso, Coupling::Joint), (Separate, Coupling::PerAxis), (Uniform, Coupling::Joint)]
        {
            check(&env, &box_policy(&env, backward, coupling, 1), &BoxReward::default(), true);
        }
    }
}

#[test]
fn the_line_keeps_its_contract() {
    for env in [Line::new(1).unwrap(), Line::new(5).unwrap()] {
        for backward in [BackwardPolicy::SharedTorso, BackwardPolicy::Separate, BackwardPolicy::Uniform] {
            check(&env, &line_policy(&env, backward), &LineReward::default(), false);
        }
        let biased = Exploration::on_policy().with_exit_bias(1.0).unwrap();
        let error = Sampler::new(&env, &env.uniform())
            .exploration(biased)
            .forward(2, &mut Rng::seeded(0))
            .unwrap_err();
        assert!(matches!(error, Error::Config { setting: "exit_bias", .. }), "{error}");
        let walks = Sampler::new(&env, &env.uniform()).forward(20, &mut Rng::seeded(0)).unwrap();
        assert!(walks.offsets().windows(2).all(|ends| ends[1] - ends[0] == env.n_steps()));
    }
}

/// Checks that the mean of R P_B / P_F over trajectories sampled by P_F is Z. The mean is Z only if the
/// densities of P_F and P_B refer to the same base measure.
#[test]
fn importance_weights_average_to_z() {
    fn mean_weight<E: ReplayEnv<States = Reals>>(env: &E, reward: &impl Reward<Reals>, n: usize) -> f64 {
        let policy = env.uniform();
        let walks = Sampler::new(env, &policy).forward(n, &mut Rng::seeded(4)).unwrap();
        let scores = score(env, reward, &policy, &walks, Quantities::NONE).unwrap();
        let ids = gfn::tensor::segment_ids(&scores.offsets, Device::Cpu);
        let sums = gfn::tensor::segment_sum(&(&scores.log_pb - &scores.log_pf), &ids, n);
        (sums + &scores.log_reward).exp().mean(Kind::Double).double_value(&[])
    }
    // This reward is nearly flat. With large rewards only near the corners of the box, the mean would be too
    // noisy.
    let flat = |points: &Reals, _: Option<&Tensor>| -> gfn::Result<Vec<f64>> {
        Ok(points
            .rows()
            .map(|point| (1.0 - point.iter().sum::<f64>() / point.len() as f64 / 2.0).ln())
            .collect())
    };
    for env in [BoxEnv::cartesian(1, 0.3), BoxEnv::cartesian(2, 0.25), BoxEnv::polar(0.5)].map(Result::unwrap)
    {
        let got = mean_weight(&env, &flat, 100_000);
        assert!((got - 0.75).abs() < 0.03, "{env:?}: {got}");
    }
    let got = mean_weight(&Line::new(2).unwrap(), &LineReward::default(), 100_000);
    assert!((got - 2.0).abs() < 0.1, "line: {got}");
}

#[test]
fn invalid_settings_are_refused_by_name() {
    for delta in [0.0, 1.0, -0.1, f64::NAN, f64::INFINITY] {
        let error = BoxEnv::cartesian(2, delta).unwrap_err().to_string();
        assert!(error.contains("delta") && error.contains(&delta.to_string()), "{error}");
        assert!(BoxEnv::polar(delta).is_err());
    }
    assert!(BoxEnv::cartesian(0, 0.1).is_err());
    assert!(Line::new(0).is_err());
    assert!(BoxReward::new(0.0, 0.5, 2.0).is_err() && LineReward::new([(0.0, 0.0)]).is_err());

    let env = BoxEnv::cartesian(2, 0.25).unwrap();
    let refused = |direction, state: [f64; 2], action: [f64; 3], words: &str| {
        let mut states = Reals::from_rows([state]);
        let error = env.step(direction, &mut states, &Reals::from_rows([action])).unwrap_err();
        assert!(matches!(error, Error::IllegalStep { row: 0, .. } | Error::Contract { .. }));
        let error = error.to_string();
        assert!(error.contains(words) && error.contains(&format!("{:?}", state)), "{error}");
    };
    use Direction::{Backward, Forward};
    refused(Forward, [0.0, 0.0], [0.0, 0.0, 1.0], "the exit isn't possible at the source");
    refused(Forward, [0.5, 0.5], [0.5, 0.6, 1.0], "must hold the point of the state");
    refused(Forward, [0.5, 0.5], [0.6, 0.9, 0.0], "no step of the length `delta`");
    refused(Forward, [0.5, 0.5], [0.9, 1.1, 0.0], "no step of the length `delta`");
    refused(Forward, [0.5, 0.5], [0.9, 1.0 + 1e-10, 0.0], "no step of the length `delta`");
    refused(Backward, [0.5, 0.5], [0.1, -1e-10, 0.0], "no step of the length `delta`");
    refused(Forward, [0.5, 0.5], [f64::NAN, 0.9, 0.0], "no step of the length `delta`");
    refused(Forward, [0.8, 0.5], [0.9, 0.9, 0.0], "only the exit is possible");
    refused(Forward, [0.5, 0.5], [0.9, 0.9, 0.5], "the last number of an action must be 0");
    refused(Forward, [f64::NAN, 0.5], [0.9, 0.9, 0.0], "outside [0, 1]");
    refused(Backward, [0.0, 0.0], [0.0, 0.0, 0.0], "no backward step is possible at the source");
    refused(Backward, [0.2, 0.5], [0.0, 0.1, 0.0], "only the step from the source leads to this state");
    assert!(matches!(
        env.step(Forward, &mut Reals::from_rows([[0.5]]), &env.no_actions()),
        Err(Error::Shape { .. })
    ));

    let mixtures = BoxPolicyConfig::default().mixtures;
    let outputs = Tensor::full([1, mixtures.width(2) as i64], f64::NAN, (Kind::Double, Device::Cpu));
    let dist = BoxDist::new(env, Forward, env.initial(&[0]), mixtures, outputs).unwrap();
    let error = dist.sample(&[0], &Exploration::on_policy(), &mut Rng::seeded(0)).unwrap_err();
    assert!(matches!(error, Error::NonFinite { value, .. } if value.is_nan()));
    // If all actions are random, the network's outputs aren't used, so outputs of NaN cause no error.
    assert!(dist.sample(&[0], &Exploration::epsilon(1.0).unwrap(), &mut Rng::seeded(0)).is_ok());
    let wide = BetaMixtures { min_concentration: 5.0, max_concentration: 5.0, ..mixtures };
    assert!(
        BoxDist::new(
            env,
            Forward,
            env.initial(&[0]),
            wide,
            Tensor::zeros([1, 1], (Kind::Double, Device::Cpu))
        )
        .is_err()
    );

    let nan =
        |points: &Reals, _: Option<&Tensor>| -> gfn::Result<Vec<f64>> { Ok(vec![f64::NAN; points.len()]) };
    let walks = Sampler::new(&env, &env.uniform()).forward(3, &mut Rng::seeded(0)).unwrap();
    let error = score(&env, &nan, &env.uniform(), &walks, Quantities::NONE).unwrap_err();
    assert!(matches!(error, Error::NonFinite { what: "log-reward", .. }));
}

/// Checks that the Beta distributions of an untrained policy have concentrations between the smallest and the
/// largest permitted value, however close these two values are.
#[test]
fn narrow_mixtures_start_within_their_range() {
    let env = BoxEnv::cartesian(2, 0.25).unwrap();
    for (min_concentration, max_concentration) in [(0.6, 0.65), (0.6, 0.6001), (5.0, 5.5)] {
        for coupling in [Coupling::Joint, Coupling::PerAxis] {
            let mixtures = BetaMixtures { coupling, components: 4, min_concentration, max_concentration };
            let config = BoxPolicyConfig { mixtures, ..BoxPolicyConfig::default() };
            let policy =
                BoxPolicy::new(&env, config, Device::Cpu, Kind::Double, &mut Rng::seeded(0)).unwrap();
            let walks = Sampler::new(&env, &policy).forward(20, &mut Rng::seeded(1)).unwrap();
            let scores = score(&env, &BoxReward::default(), &policy, &walks, Quantities::NONE).unwrap();
            assert_eq!(scores.log_pf.isfinite().all().int64_value(&[]), 1);
        }
    }
}

fn trainer(env: BoxEnv) -> Trainer<BoxEnv> {
    let policy = box_policy(&env, BackwardPolicy::SharedTorso, Coupling::Joint, 1);
    let config = TrainerConfig {
        batch: 32,
        replay_after: 2,
        replay_path: ReplayPath::PolicyBackward,
        ..TrainerConfig::default()
    };
    let replay = ReplayConfig { capacity: 100, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let objective = SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda: 0.9 }).unwrap();
    let trainer = Trainer::new(env, BoxReward::default(), policy, objective, config, Rng::seeded(8)).unwrap();
    trainer.with_replay(ReplayBuffer::new(replay).unwrap())
}

#[test]
fn a_resumed_run_ends_where_an_uninterrupted_one_does() {
    let folder = std::env::temp_dir().join(format!("gfn-box-{}", std::process::id()));
    for env in [BoxEnv::cartesian(2, 0.2).unwrap(), BoxEnv::polar(0.25).unwrap()] {
        let mut whole = trainer(env);
        let mut first = trainer(env);
        let mut second = trainer(env);
        whole.prefill(20).unwrap();
        first.prefill(20).unwrap();
        for _ in 0..12 {
            whole.step().unwrap();
        }
        for _ in 0..6 {
            first.step().unwrap();
        }
        first.save(&folder).unwrap();
        second.resume(&folder).unwrap();
        for _ in 0..6 {
            second.step().unwrap();
        }
        let values = |trainer: &Trainer<BoxEnv>| -> Vec<Tensor> {
            trainer.policy().parameters().unwrap().iter().map(|p| p.tensor.detach()).collect()
        };
        assert_eq!(values(&whole), values(&second));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// Checks that short training runs approach the target. The divergence of the histogram must fall to nearly
/// that of exact samples, and log Z must be nearly exact.
#[test]
fn training_finds_the_target() {
    let env = BoxEnv::cartesian(2, 0.25).unwrap();
    let reward = BoxReward::default();
    let mut rng = Rng::seeded(0);
    let config = BoxPolicyConfig {
        mlp: MlpConfig { hidden: vec![64; 2], ..MlpConfig::default() },
        mixtures: BetaMixtures { components: 16, ..BoxPolicyConfig::default().mixtures },
        ..BoxPolicyConfig::default()
    };
    let policy = BoxPolicy::new(&env, config, Device::Cpu, Kind::Float, &mut rng).unwrap();
    let mut config = TrainerConfig { batch: 64, ..TrainerConfig::default() };
    (config.adam.lr, config.adam.log_z_lr) = (5e-3, 5e-2);
    let mut trainer = Trainer::new(env, reward, policy, TrajectoryBalance, config, rng).unwrap();
    let grid = GridHistogram::new(10, reward.cells(10)).unwrap();
    let jsd = |trainer: &Trainer<BoxEnv>| {
        let samples = Sampler::new(trainer.env(), trainer.policy())
            .forward(4_000, &mut trainer.evaluation_rng())
            .unwrap();
        grid.jsd(samples.terminal_states()).unwrap()
    };
    let before = jsd(&trainer);
    let mut log_z = 0.0;
    for _ in 0..300 {
        log_z = trainer.step().unwrap().log_z;
    }
    let after = jsd(&trainer);
    let floor = grid.floor(4_000, 10, &mut Rng::seeded(1)).unwrap();
    assert!(
        before > 0.08 && after < 0.05 && floor < 0.01,
        "from {before} to {after}; perfect samples have {floor}"
    );
    assert!((log_z - reward.log_z(2)).abs() < 0.3, "log Z {log_z}");
}

/// Checks that the density of an action doesn't depend on the other states of the batch, nor on the order of
/// the states.
#[test]
fn states_are_independent() {
    for (env, coupling) in [
        (BoxEnv::polar(0.2).unwrap(), Coupling::Joint),
        (BoxEnv::polar(0.2).unwrap(), Coupling::PerAxis),
        (BoxEnv::cartesian(2, 0.2).unwrap(), Coupling::PerAxis),
    ] {
        let policy = box_policy(&env, BackwardPolicy::SharedTorso, coupling, 2);
        let states = Reals::from_rows([[0.0, 0.0], [0.5, 0.5], [0.9, 0.3], [0.4, 0.1]]);
        let pf = |states: &Reals| policy.evaluate(&env, states, None, Quantities::PF).unwrap().pf.unwrap();
        let dist = pf(&states);
        let rows = [3, 1, 1, 0, 2, 3, 1, 0, 1];
        let mut actions = dist.sample(&rows, &Exploration::on_policy(), &mut Rng::seeded(3)).unwrap();
        let exit = env.exit_actions(&states.select(&[1])).unwrap();
        actions.values_mut()[3..6].copy_from_slice(exit.row(0));
        assert!(actions.rows().filter(|action| action[2] == 0.0).count() >= 4, "too few moves to compare");
        let together = dist.log_prob(&rows, &actions).unwrap();
        for (k, &row) in rows.iter().enumerate() {
            let alone = pf(&states.select(&[row])).log_prob(&[0], &actions.select(&[k])).unwrap();
            let difference = (alone - together.get(k as i64)).abs().double_value(&[0]);
            assert!(difference < 1e-10, "{env:?}, entry {k}: {difference}");
        }
    }
}
