//! Tests of the network of the box: the derivatives of densities, the copy of the network on the host for
//! roll-outs, and the refusal of other boxes than that of the policy.

use gfn::distribution::{Distribution, Exploration};
use gfn::env::{Direction, Env, Reals, Rows};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, MlpConfig};
use gfn::objective::{Quantities, Quantity};
use gfn::policy::Policy;
use gfn::rollout::Sampler;
use gfn::{Error, Rng};
use gfn_gym::boxes::{BetaMixtures, BoxDist, BoxEnv, BoxPolicy, BoxPolicyConfig, BoxUniform, Coupling};
use tch::{Device, Kind, Tensor};

const COUPLINGS: [Coupling; 2] = [Coupling::Joint, Coupling::PerAxis];
const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

fn boxes() -> [BoxEnv; 4] {
    let cartesian = |ndim| BoxEnv::cartesian(ndim, 0.25).unwrap();
    [cartesian(1), cartesian(3), BoxEnv::polar(0.1).unwrap(), BoxEnv::polar(0.3).unwrap()]
}

/// Returns states, each with an action. The pairs are the forward (or backward) actions of a few uniform
/// trajectories, including actions from the initial state and exits.
fn steps(env: &BoxEnv, direction: Direction) -> (Reals, Reals) {
    let walks = Sampler::new(env, &BoxUniform).forward(6, &mut Rng::seeded(4)).unwrap();
    match direction {
        Direction::Forward => (walks.states().clone(), walks.actions().clone()),
        Direction::Backward => {
            let moved: Vec<usize> = (0..walks.n_transitions()).filter(|&t| !walks.is_exit()[t]).collect();
            let mut states = walks.states().select(&moved);
            env.step(Direction::Forward, &mut states, &walks.actions().select(&moved)).unwrap();
            (states, walks.reverse_actions().select(&moved))
        }
    }
}

#[test]
fn derivatives_are_those_of_the_densities() {
    const STEP: f64 = 1e-5;
    for env in boxes() {
        for (direction, coupling) in DIRECTIONS.into_iter().flat_map(|d| COUPLINGS.map(|c| (d, c))) {
            let (states, actions) = steps(&env, direction);
            let mixtures =
                BetaMixtures { coupling, components: 3, min_concentration: 0.5, max_concentration: 50.0 };
            let n = states.len() as i64;
            let width = mixtures.width(env.ndim()) as i64;
            let rng = &mut Rng::seeded(5);
            let values: Vec<f64> = (0..n * width).map(|_| rng.normal()).collect();
            let outputs = Tensor::from_slice(&values).view([n, width]).set_requires_grad(true);
            // The distribution is evaluated for the states in reverse order, and for the first two states
            // again.
            let rows: Vec<usize> = (0..states.len()).rev().chain([0, 1]).collect();
            let weights: Vec<f64> = rows.iter().map(|_| rng.normal()).collect();
            let chosen = actions.select(&rows);
            let sum = |outputs: &Tensor| {
                let dist =
                    BoxDist::new(env, direction, states.clone(), mixtures, outputs.shallow_clone()).unwrap();
                (dist.log_prob(&rows, &chosen).unwrap() * Tensor::from_slice(&weights)).sum(Kind::Double)
            };
            sum(&outputs).backward();
            let got = outputs.grad();
            let mut largest = 0f64;
            for column in 0..width {
                for row in 0..n {
                    let moved = |step: f64| {
                        let moved = outputs.detach().copy();
                        let _ = moved.get(row).get(column).g_add_scalar_(step);
                        sum(&moved).double_value(&[])
                    };
                    let expected = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                    let got = got.double_value(&[row, column]);
                    assert!(
                        (got - expected).abs() < 1e-6 * expected.abs().max(10.0),
                        "{env:?}: {got}, not {expected}"
                    );
                    largest = largest.max(got.abs());
                }
            }
            assert!(largest > 0.1, "nothing to be compared");
        }
    }
}

fn policy(env: &BoxEnv, (backward, coupling): (BackwardPolicy, Coupling), kind: Kind) -> BoxPolicy {
    let learned = BoxPolicyConfig::default();
    let config = BoxPolicyConfig {
        mlp: MlpConfig { hidden: vec![32, 20], ..MlpConfig::default() },
        mixtures: BetaMixtures { coupling, components: 5, ..learned.mixtures },
        backward,
        estimators: EstimatorsConfig::with_flow(true),
    };
    BoxPolicy::new(env, config, Device::Cpu, kind, &mut Rng::seeded(1)).unwrap()
}

#[test]
fn roll_outs_ask_the_same_policy() {
    for env in boxes() {
        for (backward, coupling) in [
            (BackwardPolicy::SharedTorso, Coupling::Joint),
            (BackwardPolicy::SharedTorso, Coupling::PerAxis),
            (BackwardPolicy::Separate, Coupling::Joint),
        ] {
            let policy = policy(&env, (backward, coupling), Kind::Float);
            for (direction, wants) in DIRECTIONS.into_iter().zip([Quantities::PF, Quantities::PB]) {
                let (states, actions) = steps(&env, direction);
                let rows: Vec<usize> = (0..states.len()).collect();
                let frozen = policy.on_host(direction).unwrap().distribution(&env, &states).unwrap();
                // The network's copy on the host must give the same densities of actions as the network
                // itself, evaluated for one direction alone, and for both directions together.
                for wants in [wants, Quantities::PF | Quantity::LogPb | Quantity::LogFlow] {
                    let evaluation = policy.evaluate(&env, &states, None, wants).unwrap();
                    let dist = if direction == Direction::Forward { evaluation.pf } else { evaluation.pb };
                    let expected = dist.unwrap().log_prob(&rows, &actions).unwrap();
                    assert!(expected.requires_grad());
                    let off =
                        (frozen.log_prob(&rows, &actions).unwrap() - &expected).abs().max().double_value(&[]);
                    assert!(off < 1e-4, "{env:?} {direction:?} {backward:?}: {off}");
                }
                let drawn = |rng: &mut Rng| frozen.sample(&rows, &Exploration::on_policy(), rng).unwrap();
                env.check(direction, &states, &drawn(&mut Rng::seeded(6))).unwrap();
            }
        }
    }
}

/// Checks that every output that any state uses has a gradient, although most states don't use all outputs.
#[test]
fn every_part_of_the_network_learns() {
    for env in boxes() {
        let policy = policy(&env, (BackwardPolicy::SharedTorso, Coupling::Joint), Kind::Double);
        let evaluation =
            policy.evaluate(&env, &steps(&env, Direction::Forward).0, None, Quantities::PF).unwrap();
        let (states, actions) = steps(&env, Direction::Forward);
        let rows: Vec<usize> = (0..states.len()).collect();
        evaluation.pf.unwrap().log_prob(&rows, &actions).unwrap().sum(Kind::Double).backward();
        let bias = &policy.parameters().unwrap().iter().rfind(|p| p.name.ends_with("2.bias")).unwrap().tensor;
        let width = policy.config().mixtures.width(env.ndim()) as i64;
        let learned = bias.grad().ne(0.0).to_kind(Kind::Int64);
        assert_eq!(learned.narrow(0, 0, width).sum(Kind::Int64).int64_value(&[]), width, "{env:?}");
        assert_eq!(learned.narrow(0, width, width).sum(Kind::Int64).int64_value(&[]), 0, "P_B wasn't asked");
    }
}

#[test]
fn a_policy_is_for_one_box() {
    let [_, _, polar, other] = boxes();
    let policy = policy(&polar, (BackwardPolicy::Uniform, Coupling::Joint), Kind::Float);
    assert!(policy.on_host(Direction::Backward).is_none(), "a uniform P_B needs no network");
    assert!(
        policy.evaluate(&other, &other.initial(&[0]), None, Quantities::PF).is_ok(),
        "delta isn't the network's business"
    );
    for env in [BoxEnv::cartesian(2, 0.1).unwrap(), BoxEnv::cartesian(3, 0.1).unwrap()] {
        let error = policy.evaluate(&env, &env.initial(&[0]), None, Quantities::PF).unwrap_err();
        assert!(matches!(error, Error::Config { setting: "the box", .. }), "{error}");
        let frozen = policy.on_host(Direction::Forward).unwrap();
        assert!(matches!(
            frozen.distribution(&env, &env.initial(&[0])),
            Err(Error::Config { setting: "the box", .. })
        ));
    }
}
