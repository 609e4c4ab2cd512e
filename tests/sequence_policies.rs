//! Tests of policies that read sequences. Sampling, which goes step by step, and scoring, which takes one
//! pass, must give the same probabilities.
use gfn::Rng;
use gfn::contract::{Budget, check_env};
use gfn::distribution::GraphActionCategorical;
use gfn::env::StateGraph;
use gfn::env::{Direction, DiscreteEnv, Env, Rows, VectorEnv, VectorStates};
use gfn::examples::word_env;
use gfn::metrics::Distances;
use gfn::nn::{EstimatorsConfig, Parameters, SequenceKind, SequenceNetConfig};
use gfn::objective::score;
use gfn::objective::{DetailedBalance, TrajectoryBalance};
use gfn::objective::{Quantities, Quantity};
use gfn::optim::AdamConfig;
use gfn::policy::{HostPolicy, Policy, SequenceLayout, SequencePolicy, SequencePolicyConfig, SequenceWork};
use gfn::rollout::Sampler;
use gfn::train::{Trainer, TrainerConfig};
use gfn_gym::sequence::TokenSequence;
use tch::{Device, Kind, Tensor};

const LENGTH: usize = 6;
const KINDS: [SequenceKind; 3] =
    [SequenceKind::Lstm, SequenceKind::Gru, SequenceKind::Transformer { heads: 2 }];
fn quantities() -> Quantities {
    Quantity::LogPf | Quantity::LogPb | Quantity::LogFlow
}

fn env() -> VectorEnv {
    word_env(3, LENGTH)
}

fn config(kind: SequenceKind) -> SequencePolicyConfig {
    let net = SequenceNetConfig { kind, width: 16, layers: 2 };
    SequencePolicyConfig {
        net,
        estimators: EstimatorsConfig::with_flow(true),
        ..SequencePolicyConfig::default()
    }
}

fn build(config: SequencePolicyConfig, kind: Kind) -> SequencePolicy {
    let layout = SequenceLayout { values: 4, length: LENGTH, unset: 0 };
    SequencePolicy::new(&env(), layout, config, Device::Cpu, kind, &mut Rng::seeded(4)).unwrap()
}

fn parameters(policy: &SequencePolicy) -> &Parameters {
    Policy::<VectorEnv>::parameters(policy).unwrap()
}

/// Returns words of different lengths. Some of them are prefixes of others.
fn words() -> VectorStates {
    let words = [
        [0u16, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0],
        [1, 3, 2, 0, 0, 0],
        [1, 3, 2, 2, 1, 1],
        [2, 2, 2, 2, 0, 0],
        [1, 3, 1, 0, 0, 0],
        [3, 3, 3, 3, 3, 3],
    ];
    VectorStates::from_rows(words)
}

/// Returns all prefixes of the words in `states`, grouped by length in ascending order, as a sampler would
/// visit them.
fn by_length(states: &VectorStates) -> Vec<VectorStates> {
    let cut = |length: usize| {
        let long = states.rows().filter(|row| row.iter().filter(|&&x| x > 0).count() >= length);
        let entries =
            long.flat_map(|row| row.iter().enumerate().map(|(i, &x)| if i < length { x } else { 0 }));
        VectorStates::from_flat(LENGTH, entries.collect()).unwrap()
    };
    (0..=LENGTH).map(cut).collect()
}

/// Returns log P_F of all actions in each state, computed in one pass.
fn log_probs_in_one_pass(policy: &SequencePolicy, states: &VectorStates) -> Tensor {
    log_probs(&policy.evaluate(&env(), states, None, quantities()).unwrap().pf.unwrap())
}

fn log_probs(pf: &GraphActionCategorical) -> Tensor {
    pf.log_probs().detach().to_kind(Kind::Double)
}

type RollOut<'a> = Box<dyn HostPolicy<VectorEnv> + 'a>;

/// Starts a roll-out, which caches the prefixes that it has read.
fn start_roll_out(policy: &SequencePolicy) -> RollOut<'_> {
    policy.on_host(Direction::Forward).unwrap()
}

/// Returns log P_F of all actions in each state, computed step by step with a roll-out's cache.
fn log_probs_by_step(roll_out: &RollOut<'_>, states: &VectorStates) -> Tensor {
    log_probs(&roll_out.distribution(&env(), states).unwrap())
}

fn largest_difference(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.size(), b.size());
    (a - b).abs().max().double_value(&[])
}

#[test]
fn the_environment_of_these_tests_keeps_its_contract() {
    check_env(&env(), Budget::thorough().with_walks(30), &mut Rng::seeded(0)).unwrap();
}

/// Checks that sampling and scoring agree, in single and in double precision. The test also counts
/// evaluations: sampling must make one step per letter, and scoring must make one pass.
#[test]
fn sampling_and_scoring_agree() {
    for (kind, tolerance) in [(Kind::Float, 1e-5), (Kind::Double, 1e-10)] {
        for net in KINDS {
            let policy = build(config(net), kind);
            let roll_out = start_roll_out(&policy);
            for states in by_length(&words()) {
                let work = policy.work();
                let step = log_probs_by_step(&roll_out, &states);
                assert_eq!(policy.work().steps, work.steps + 1, "{net:?}");
                assert_eq!(policy.work().passes, work.passes);
                let distance = largest_difference(&step, &log_probs_in_one_pass(&policy, &states));
                assert_eq!(policy.work().passes, work.passes + 1);
                assert!(distance < tolerance, "{net:?}, {kind:?}: {distance}");
            }
        }
    }
}

/// Checks that a roll-out accepts words in any order and of any lengths, repeated or alone, whether or not
/// their prefixes are in the cache.
#[test]
fn rows_may_be_selected_and_mixed() {
    let states = words();
    let mut rng = Rng::seeded(1);
    for net in KINDS {
        let policy = build(config(net), Kind::Double);
        let alone = |row: usize| log_probs_in_one_pass(&policy, &states.select(&[row]));
        let expected: Vec<Tensor> = (0..states.len()).map(alone).collect();
        for warm in [false, true] {
            let roll_out = start_roll_out(&policy);
            if warm {
                for states in &by_length(&states) {
                    drop(log_probs_by_step(&roll_out, states));
                }
            }
            for _ in 0..10 {
                let rows: Vec<usize> = (0..1 + rng.below(9)).map(|_| rng.below(states.len())).collect();
                let before = policy.work();
                let together = rows.iter().map(|&row| &expected[row]).collect::<Vec<_>>();
                for out in [
                    log_probs_by_step(&roll_out, &states.select(&rows)),
                    log_probs_in_one_pass(&policy, &states.select(&rows)),
                ] {
                    assert!(
                        largest_difference(&out, &Tensor::cat(&together, 0)) < 1e-10,
                        "{net:?}, {rows:?}"
                    );
                }
                assert!(!warm || policy.work().steps == before.steps, "everything is known");
            }
        }
    }
}

/// Checks that a step may have words of different lengths. Each word extends its own cached prefix.
#[test]
fn a_step_may_mix_lengths() {
    for net in KINDS {
        let policy = build(config(net), Kind::Double);
        let roll_out = start_roll_out(&policy);
        for states in &by_length(&words())[..3] {
            let _ = log_probs_by_step(&roll_out, states);
        }
        let mixed = VectorStates::from_rows([
            [1u16, 3, 2, 0, 0, 0],
            [2, 2, 1, 0, 0, 0],
            [2, 0, 0, 0, 0, 0],
            [3, 0, 0, 0, 0, 0],
        ]);
        let mixed_lengths = mixed.select(&[1, 3, 0, 2, 1]);
        let before = policy.work();
        let step = log_probs_by_step(&roll_out, &mixed_lengths);
        assert_eq!(policy.work().passes, before.passes);
        assert!(largest_difference(&step, &log_probs_in_one_pass(&policy, &mixed_lengths)) < 1e-10);
        let ahead = VectorStates::from_rows([[1u16, 3, 2, 0, 0, 0], [2, 1, 0, 0, 0, 0]]);
        assert!(
            largest_difference(
                &log_probs_by_step(&roll_out, &ahead),
                &log_probs_in_one_pass(&policy, &ahead)
            ) < 1e-10
        );
    }
}

/// Checks that a small cache, from which words are evicted, doesn't change results, even if a batch doesn't
/// fit into it.
#[test]
fn a_small_cache_changes_nothing_but_the_work() {
    for net in KINDS {
        let large = build(config(net), Kind::Double);
        let row_bytes = match net {
            SequenceKind::Lstm => 4,
            SequenceKind::Gru => 2,
            SequenceKind::Transformer { .. } => 5,
        } * 16
            * 8;
        for (rows, fits) in [(0, false), (3, false), (20, true)] {
            let small =
                build(SequencePolicyConfig { cache_bytes: rows * row_bytes, ..config(net) }, Kind::Double);
            let roll_out = start_roll_out(&small);
            for first in 1u16..=3 {
                let last = if first == 1 { 2 } else { 1 };
                let pair = VectorStates::from_rows([[first; LENGTH], [first, last, last, last, last, last]]);
                for states in by_length(&pair) {
                    assert!(
                        largest_difference(
                            &log_probs_by_step(&roll_out, &states),
                            &log_probs_in_one_pass(&large, &states)
                        ) < 1e-10,
                        "{net:?}, {rows}"
                    );
                }
            }
            // A cached prefix takes one row of the cache, and each pair of words has 11 different prefixes
            // besides the empty one. Only the cache of 20 rows can hold the prefixes of a pair. It can't hold
            // those of all three pairs.
            let work = small.work();
            assert_eq!(work.passes == 0, fits, "{net:?}: {work:?}");
            assert_eq!(fits, work.prefixes >= 3 * 11, "{net:?}: {work:?}");
        }
    }
}

/// Checks that changed weights make the cache invalid, even if `Parameters::version` doesn't reveal the
/// change.
#[test]
fn any_change_of_weights_is_detected() {
    let halve: [fn(&Tensor); 3] = [
        |x| tch::no_grad(|| drop(x.shallow_clone().g_mul_scalar_(0.5))),
        |x| x.shallow_clone().set_data(&tch::no_grad(|| x * 0.5)),
        |x| drop(x.data().g_mul_scalar_(0.5)),
    ];
    for net in KINDS {
        let policy = build(config(net), Kind::Double);
        for halve in halve {
            let draw = || Sampler::new(&env(), &policy).forward(200, &mut Rng::seeded(3)).unwrap();
            let drawn = draw();
            let before = log_probs_in_one_pass(&policy, &words());
            for parameter in parameters(&policy) {
                halve(&parameter.tensor);
            }
            let after = log_probs_in_one_pass(&policy, &words());
            assert!(largest_difference(&after, &before) > 1e-3, "the weights have changed");
            let again = draw();
            assert!(again.terminal_states() != drawn.terminal_states(), "{net:?}: drawn as before");
            for states in by_length(&words()) {
                assert!(
                    largest_difference(
                        &log_probs_by_step(&start_roll_out(&policy), &states),
                        &log_probs_in_one_pass(&policy, &states)
                    ) < 1e-10,
                    "{net:?}"
                );
            }
        }
    }
}

/// Checks the number of evaluations: sampling evaluates each distinct prefix once, letter by letter, and
/// scoring takes one pass.
#[test]
fn work_is_done_once() {
    for net in KINDS {
        let policy = build(config(net), Kind::Float);
        let trajectories = Sampler::new(&env(), &policy).forward(64, &mut Rng::seeded(2)).unwrap();
        let sampled = policy.work();
        let distinct = trajectories.states().group().first.len() as u64;
        assert_eq!((sampled.passes, sampled.prefixes), (0, distinct), "{net:?}");
        assert!(sampled.steps <= LENGTH as u64 + 1);

        let reward = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
        let scores = score(&env(), &reward, &policy, &trajectories, Quantities::from(Quantity::LogFlow));
        let work = policy.work();
        assert_eq!((work.passes, work.steps), (1, sampled.steps));
        assert!(work.sequences <= 64 && work.sequences < distinct);
        assert!(scores.unwrap().log_pf.requires_grad());
    }
}

/// Checks sequences of fixed length. Such sequences have no exit, because the last token ends a trajectory,
/// so P_F of a finished sequence is never needed.
#[test]
fn a_fixed_length_needs_no_exit() {
    let sequence = TokenSequence::fixed(4, 5).unwrap();
    let env = sequence.env();
    let layout = SequenceLayout { values: sequence.values(), length: sequence.entries(), unset: 0 };
    let reward = |states: &VectorStates, _: Option<&Tensor>| Ok(vec![0.0; states.len()]);
    for net in KINDS {
        let mut rng = Rng::seeded(6);
        let policy =
            SequencePolicy::new(&env, layout, config(net), Device::Cpu, Kind::Double, &mut rng).unwrap();
        let trajectories = Sampler::new(&env, &policy).forward(20, &mut rng).unwrap();
        assert_eq!((policy.work().steps, policy.work().passes), (5, 0));
        let needs = Quantities::from(Quantity::LogFlow);
        let scored = || score(&env, &reward, &policy, &trajectories, needs).unwrap();
        let scores = scored();
        let again = tch::no_grad(scored);
        assert_eq!((policy.work().steps, policy.work().passes), (5, 2));
        assert!(largest_difference(&scores.log_pf, &again.log_pf) < 1e-10);
        assert!(
            largest_difference(scores.get(Quantity::LogFlow).unwrap(), again.get(Quantity::LogFlow).unwrap())
                < 1e-10
        );
    }
}

/// Checks that every parameter has a gradient, and that it equals finite differences of the loss.
#[test]
fn gradients_reach_every_parameter() {
    for net in KINDS {
        let policy = build(config(net), Kind::Double);
        let loss = || {
            let evaluation = policy.evaluate(&env(), &words(), None, quantities()).unwrap();
            let log_z = Policy::<VectorEnv>::log_z(&policy, None, 1).unwrap();
            let log_probs = evaluation.pf.unwrap().log_probs();
            log_probs.square().sum(Kind::Double)
                + evaluation.values.get(Quantity::LogFlow).unwrap().square().sum(Kind::Double)
                + (log_z - 1.0).square().sum(Kind::Double)
        };
        loss().backward();
        for parameter in parameters(&policy) {
            let gradient = parameter.tensor.grad();
            assert!(gradient.defined(), "{}", parameter.name);
            let largest = gradient.abs().view(-1).argmax(0, false).int64_value(&[]);
            let expected = gradient.view(-1).double_value(&[largest]);
            assert!(expected.abs() > 1e-9, "{net:?}: {} has no gradient", parameter.name);
            let flat = parameter.tensor.view(-1);
            let nudge = |by: f64| {
                tch::no_grad(|| {
                    let mut element = flat.narrow(0, largest, 1);
                    let _ = element.g_add_scalar_(by);
                    loss().double_value(&[])
                })
            };
            let step = 1e-5;
            let above = nudge(step);
            let below = nudge(-2.0 * step);
            nudge(step);
            let slope = (above - below) / (2.0 * step);
            let tolerance = 1e-5 * expected.abs().max(1.0);
            assert!((slope - expected).abs() < tolerance, "{net:?}: {}: {slope} {expected}", parameter.name);
        }
    }
}

/// Checks that the backward step has probability 1, because only the last token can be removed.
#[test]
fn going_back_is_certain() {
    let policy = build(config(KINDS[0]), Kind::Float);
    let evaluation = policy.evaluate(&env(), &words(), None, Quantities::PB).unwrap();
    let pb = evaluation.pb.unwrap();
    assert_eq!(pb.masks(), &env().masks(Direction::Backward, &words()));
    assert!(pb.host_log_probs().unwrap().iter().all(|&p| p == 0.0));
    assert_eq!(policy.work(), SequenceWork::default(), "no network is needed for that");
    let back = Sampler::new(&env(), &policy).backward(&words(), &mut Rng::seeded(0)).unwrap();
    assert_eq!(back.terminal_states(), &words());
}

#[test]
fn invalid_settings_are_refused() {
    let new = |length, unset, net| {
        let layout = SequenceLayout { values: 4, length, unset };
        let config = SequencePolicyConfig { net, ..SequencePolicyConfig::default() };
        SequencePolicy::new(&env(), layout, config, Device::Cpu, Kind::Float, &mut Rng::seeded(0))
            .unwrap_err()
            .to_string()
    };
    let net = SequenceNetConfig::default();
    assert!(new(LENGTH + 1, 0, net).contains("number of entries"));
    assert!(new(LENGTH, 9, net).contains("starts with [0, 0"));
    assert!(new(LENGTH, 0, SequenceNetConfig { width: 0, ..net }).contains("0 wide"));

    let policy = build(config(KINDS[0]), Kind::Float);
    let gap = VectorStates::from_rows([[1u16, 0, 1, 0, 0, 0]]);
    assert!(
        policy.evaluate(&env(), &gap, None, Quantities::PF).unwrap_err().to_string().contains("[1, 0, 1")
    );
    let conditions = Tensor::zeros([7, 2], (Kind::Float, Device::Cpu));
    assert!(policy.evaluate(&env(), &words(), Some(&conditions), Quantities::PF).is_err());
    let none = policy.evaluate(&env(), &env().initial(&[]), None, quantities()).unwrap();
    assert_eq!((none.pf.unwrap().len(), none.values.get(Quantity::LogFlow).unwrap().size()), (0, vec![0]));
}

/// Checks that a state under a condition gets the same probabilities and log F alone as in a batch of states
/// under two conditions, that sequences are shared only within a condition, and that the condition matters.
#[test]
fn states_under_different_conditions_share_no_sequence() {
    for net in KINDS {
        let mut config = config(net);
        config.estimators.n_conditions = 2;
        let policy = build(config, Kind::Double);
        let n = words().len() as i64;
        let [one, other] = [0.25, -1.0].map(|c| Tensor::full([n, 2], c, (Kind::Double, Device::Cpu)));
        let mut both = words();
        both.append(words());
        let conditions = Tensor::cat(&[&one, &other], 0);
        let outputs = |states: &VectorStates, conditions: &Tensor| {
            let evaluation = policy.evaluate(&env(), states, Some(conditions), quantities()).unwrap();
            let log_flow = evaluation.values.get(Quantity::LogFlow).unwrap().detach();
            [log_probs(&evaluation.pf.unwrap()), log_flow]
        };
        let before = policy.work().sequences;
        let together = outputs(&both, &conditions);
        assert_eq!(policy.work().sequences - before, 8, "four words are no prefix of another word");
        let row = |k: i64| outputs(&both.select(&[k as usize]), &conditions.narrow(0, k, 1));
        let alone: Vec<[Tensor; 2]> = (0..2 * n).map(row).collect();
        for (k, together) in together.iter().enumerate() {
            let alone = Tensor::cat(&alone.iter().map(|row| &row[k]).collect::<Vec<_>>(), 0);
            assert!(largest_difference(&alone, together) < 1e-10, "{net:?}");
            let halves = together.chunk(2, 0);
            assert!(largest_difference(&halves[0], &halves[1]) > 1e-3, "{net:?}");
        }
        assert!(Policy::<VectorEnv>::on_host(&policy, Direction::Forward).is_none());
        let log_z = Policy::<VectorEnv>::log_z(&policy, Some(&conditions), 14).unwrap();
        assert_eq!(log_z.size(), [14]);
        assert!(policy.evaluate(&env(), &words(), None, Quantities::PF).is_err());
    }
}

/// Checks that all three kinds of networks learn, by TB and by DB, a reward that depends on the order of
/// letters. The distance from the target is exact.
#[test]
fn all_kinds_learn() {
    let reward = |states: &VectorStates, _: Option<&Tensor>| -> gfn::Result<Vec<f64>> {
        let rises = |row: &[u16]| row.windows(2).filter(|pair| pair[0] < pair[1]).count() as f64;
        Ok(states.rows().map(rises).collect())
    };
    let env = word_env(2, 4);
    let layout = SequenceLayout { values: 3, length: 4, unset: 0 };
    for (net, flow) in [(KINDS[0], false), (KINDS[1], true), (KINDS[2], false)] {
        let net = SequenceNetConfig { kind: net, width: 32, layers: 1 };
        let config = SequencePolicyConfig {
            net,
            estimators: EstimatorsConfig::with_flow(flow),
            ..SequencePolicyConfig::default()
        };
        let mut rng = Rng::seeded(0);
        let policy = SequencePolicy::new(&env, layout, config, Device::Cpu, Kind::Float, &mut rng).unwrap();
        let settings = TrainerConfig { batch: 64, ..TrainerConfig::default() };
        let settings = TrainerConfig { adam: AdamConfig { lr: 3e-3, ..settings.adam }, ..settings };
        let mut trainer = match flow {
            true => {
                Trainer::new(env.clone(), reward, policy, DetailedBalance::default(), settings, rng).unwrap()
            }
            false => Trainer::new(env.clone(), reward, policy, TrajectoryBalance, settings, rng).unwrap(),
        };
        for _ in 0..300 {
            trainer.step().unwrap();
        }
        let space = StateGraph::build(&env, 100).unwrap();
        let learned = space.terminating_distribution(&env, trainer.policy(), None).unwrap();
        let target = space.target_distribution(&reward, None).unwrap();
        let tv = Distances::between(&learned.probs, &target.probs).unwrap().tv;
        assert!(tv < 0.05, "{net:?}, flow {flow}: {tv}");
    }
}
