//! Figures that replicas work out in shares: those of one trainer, to the bit.

use std::sync::Mutex;

use crate::words::{count, fresh, says, with_flow, words};
use gfn::collective::{Collective, Replica, replicate};
use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Rows, StateGraph, VectorEnv, VectorStates};
use gfn::graph::GraphStates;
use gfn::metrics::{Evaluator, ExactFlows, PrunedDistribution, Target, TerminatingDistribution};
use gfn::nn::MlpConfig;
use gfn::objective::Quantities;
use gfn::objective::TrajectoryBalance;
use gfn::policy::{Evaluation, KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy};
use gfn::rollout::Sampler;
use gfn::testing::{Triangles, Words};
use gfn::train::{Fit, Metrics, Trainer, Validation};
use gfn::{Error, Result, Rng};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::hypergrid::HyperGrid;
use tch::{Device, Kind, Tensor};

/// 32,768 points: more chunks than replicas, also of those that are reached in as many steps.
fn grid() -> VectorEnv<HyperGrid> {
    HyperGrid::new(5, 8).unwrap()
}

fn policy(seed: u64) -> MlpPolicy<KHot> {
    let mlp = MlpConfig { hidden: vec![16], ..MlpConfig::default() };
    let config = MlpPolicyConfig { mlp, ..MlpPolicyConfig::default() };
    MlpPolicy::new(&grid(), KHot::new(5, 8), config, Device::Cpu, Kind::Float, &mut Rng::seeded(seed)).unwrap()
}

fn reward(points: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(points.rows().map(|point| point.iter().map(|&x| f64::from(x)).sum::<f64>().sin()).collect())
}

/// All figures of a policy.
#[derive(PartialEq, Debug)]
struct Figures {
    learned: TerminatingDistribution,
    target: Target,
    flows: ExactFlows,
    pruned: (VectorStates, Vec<f64>, f64),
    samples: VectorStates,
    rewards: Vec<f64>,
    sampled: Vec<f64>,
    /// Where the random stream is afterwards.
    stream: Rng,
}

fn figures(replica: Option<&Replica>) -> Result<Figures> {
    let (env, policy, mut rng) = (grid(), policy(1), Rng::seeded(2));
    let space = StateGraph::build(&env, 100_000)?;
    let evaluator = Evaluator::of(&env).shared_by(replica.map(|replica| replica as _));
    let PrunedDistribution { states, probs, dropped, .. } = evaluator.pruned_distribution(&policy, 0.0, 100_000)?;
    let samples = evaluator.sample(&policy, 1_300, &mut rng)?;
    let log_z = evaluator.estimate_log_z(&policy, &reward, 1_300, &mut rng)?;
    let eubo = evaluator.eubo(&policy, &reward, &samples, &mut rng)?;
    let mut sampled = evaluator.estimate_log_probs(&policy, &samples.select(&[0, 7, 9]), 400, &mut rng)?;
    sampled.extend([log_z.log_z, log_z.elbo.mean, log_z.interval.0, log_z.effective_samples, eubo.mean]);
    Ok(Figures {
        learned: evaluator.terminating_distribution(&space, &policy, None)?,
        target: evaluator.target_distribution(&space, &reward, None)?,
        flows: evaluator.exact_flows(&space, (&UniformPolicy, &reward), None)?,
        pruned: (states, probs, dropped),
        rewards: evaluator.figures(samples.len(), |range| reward(&samples.select(&range.collect::<Vec<_>>()), None))?,
        samples,
        sampled,
        stream: rng,
    })
}

#[test]
fn what_replicas_work_out_together_has_the_bits_of_one() {
    tch::set_num_threads(1);
    let alone = figures(None).unwrap();
    assert!((alone.learned.probs.iter().sum::<f64>() - 1.0).abs() < 1e-9 && alone.samples.len() == 1_300);
    assert!(alone.pruned.1.len() == 32_768 && alone.pruned.2 == 0.0);
    for n in 1..=3 {
        let all = Mutex::new(Vec::new());
        replicate(n, |replica| {
            let mine = figures(Some(&replica))?;
            all.lock().unwrap().push(mine);
            Ok(())
        })
        .unwrap();
        let all = all.into_inner().unwrap();
        assert!(all.len() == n && all.iter().all(|one| *one == alone), "{n} replicas");
    }
}

/// Alone nothing is gained or lost by going through an evaluator: the old way gives the same.
#[test]
fn an_evaluator_by_itself_is_the_plain_functions() {
    tch::set_num_threads(1);
    let (env, policy) = (grid(), policy(1));
    let space = StateGraph::build(&env, 100_000).unwrap();
    let alone = figures(None).unwrap();
    assert_eq!(space.terminating_distribution(&env, &policy, None).unwrap(), alone.learned);
    assert_eq!(space.target_distribution(&reward, None).unwrap(), alone.target);
    assert_eq!(space.exact_flows(&env, &UniformPolicy, &reward, None).unwrap(), alone.flows);
    // A sampler that draws all at once has the same law.
    let plain = Sampler::new(&env, &policy).forward(4_000, &mut Rng::seeded(3)).unwrap();
    let batches = Evaluator::of(&env).sample(&policy, 4_000, &mut Rng::seeded(4)).unwrap();
    let mean = |states: &VectorStates| {
        states.rows().map(|point| point.iter().map(|&x| f64::from(x)).sum::<f64>()).sum::<f64>() / states.len() as f64
    };
    let (a, b) = (mean(plain.terminal_states()), mean(&batches));
    assert!((a - b).abs() < 0.1 * a, "{a} and {b}");
}

/// Graphs, labelled and up to isomorphism, come to the others as they are: with their labels.
#[test]
fn graphs_that_replicas_sample_are_those_of_one() {
    fn same<E: EnumerableEnv<States = GraphStates> + Sync>(env: &E) {
        let draw = |evaluator: Evaluator<'_, E>| evaluator.sample(&UniformPolicy, 1_100, &mut Rng::seeded(5));
        let alone = draw(Evaluator::of(env)).unwrap();
        let together = replicate(2, |replica| draw(Evaluator::of(env).shared_by(Some(&replica)))).unwrap();
        assert!(alone.len() == 1_100 && alone.graphs() == together.graphs());
    }
    same(&Triangles::new());
    same(&ColoredGraphs::new(5).unwrap());
}

type Ask<'a> = &'a (dyn Fn(&Evaluator<'_, VectorEnv<HyperGrid>>, bool) -> Result<()> + Sync);

#[test]
fn members_that_evaluate_something_else_are_an_error_of_all() {
    let (env, words) = (grid(), words());
    let space = StateGraph::build(&env, 100_000).unwrap();
    let (space, smaller) = (&space, StateGraph::build(&HyperGrid::new(5, 7).unwrap(), 100_000).unwrap());
    let refused = |what: &str, ask: Ask<'_>| {
        let seen = Mutex::new(Vec::new());
        let error = replicate(3, |replica| {
            let odd = replica.rank() == 1;
            let asked = ask(&Evaluator::of(&env).shared_by(Some(&replica)), odd);
            seen.lock().unwrap().push(matches!(asked, Err(Error::Contract { .. })));
            asked
        });
        says(&error.unwrap_err(), &["share an evaluation", what]);
        assert_eq!(seen.into_inner().unwrap(), [true; 3], "{what}");
    };
    refused("another policy", &|evaluator, odd| {
        evaluator.terminating_distribution(space, &policy(if odd { 2 } else { 1 }), None).map(drop)
    });
    // Without parameters, it shows in what the policy says.
    refused("another policy", &|evaluator, odd| match odd {
        true => evaluator.terminating_distribution(space, &UniformPolicy, None).map(drop),
        false => evaluator.terminating_distribution(space, &policy(1), None).map(drop),
    });
    refused("another forward policy", &|evaluator, odd| {
        evaluator.terminating_distribution(space, &Tilted(if odd { 0.5 } else { 0.0 }), None).map(drop)
    });
    refused("another list of states", &|evaluator, odd| {
        evaluator.target_distribution(if odd { &smaller } else { space }, &reward, None).map(drop)
    });
    refused("another random stream", &|evaluator, odd| {
        evaluator.sample(&policy(1), 100, &mut Rng::seeded(u64::from(odd))).map(drop)
    });
    refused("another number of samples", &|evaluator, odd| {
        evaluator.estimate_log_z(&policy(1), &reward, 100 + usize::from(odd), &mut Rng::seeded(0)).map(drop)
    });
    refused("another evaluation", &|evaluator, odd| match odd {
        true => evaluator.figures(3, |range| Ok(vec![0.0; range.len()])).map(drop),
        false => evaluator.sample(&policy(1), 100, &mut Rng::seeded(0)).map(drop),
    });
    let few = Evaluator::of(&words).figures(3, |_| Ok(vec![1.0]));
    assert!(matches!(few, Err(Error::Shape { .. })), "{few:?}");
}

#[test]
fn an_error_of_one_member_is_not_waited_for() {
    let env = grid();
    let error = replicate(3, |replica| {
        let fails = |points: &VectorStates, _: Option<&Tensor>| match points.rows().any(|point| point[..] == [7; 5]) {
            true => Err(Error::config("this point", "7 7 7 7 7", "another")),
            false => reward(points, None),
        };
        let space = StateGraph::build(&env, 100_000)?;
        Evaluator::of(&env).shared_by(Some(&replica)).target_distribution(&space, &fails, None).map(drop)
    });
    says(&error.unwrap_err(), &["this point"]);
}

/// What a validation of all replicas measures is what one trainer would have, and changes nothing.
#[test]
fn a_validation_is_shared_by_all_replicas() {
    let run = |shared: bool| {
        let calls = Mutex::new(Vec::new());
        let seen = replicate(2, |replica| {
            let make = Trainer::new(words(), count, with_flow(), TrajectoryBalance, fresh(16), Rng::seeded(1))?;
            let mut trainer = make.with_collective(replica)?;
            let (space, mut seen) = (StateGraph::build(trainer.env(), 100)?, Vec::new());
            let measure = |trainer: &Trainer<Words, _>| {
                calls.lock().unwrap().push((trainer.replica(), trainer.steps_done()));
                let learned = match shared {
                    true => trainer.evaluator().terminating_distribution(&space, trainer.policy(), None)?,
                    false => space.terminating_distribution(trainer.env(), trainer.policy(), None)?,
                };
                seen.push(learned.probs);
                Ok(Metrics::new())
            };
            let validation = Validation::every(3, measure)?;
            let mut validation = if shared { validation.shared() } else { validation };
            Fit::new(7).observe(&mut validation).run(&mut trainer)?;
            Ok(seen)
        });
        let mut calls = calls.into_inner().unwrap();
        calls.sort_unstable();
        (seen.unwrap(), calls)
    };
    let (alone, together) = (run(false), run(true));
    assert!(alone.0.len() == 3 && alone.0 == together.0);
    assert_eq!(alone.1, [(0, 3), (0, 6), (0, 7)]);
    assert_eq!(together.1, [(0, 3), (0, 6), (0, 7), (1, 3), (1, 6), (1, 7)]);
}

/// Prefers late slots by what isn't a parameter.
struct Tilted(f64);

impl Policy<VectorEnv<HyperGrid>> for Tilted {
    type Dist = GraphActionCategorical;

    fn evaluate(
        &self,
        env: &VectorEnv<HyperGrid>,
        states: &VectorStates,
        _: Option<&Tensor>,
        _: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let masks = env.masks(Direction::Forward, states);
        let logits = masks.blocks.iter().map(|block| {
            let ones = Tensor::ones([block.rows() as i64, block.width as i64], (Kind::Double, Device::Cpu));
            ones.cumsum(1, Kind::Double) * self.0
        });
        let logits: Vec<Tensor> = logits.collect();
        Ok(Evaluation { pf: Some(GraphActionCategorical::new(masks, &logits)?), ..Evaluation::default() })
    }
}
