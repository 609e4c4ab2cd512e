//! Tests of policies that depend slightly on other states of the batch. Such policies must be refused
//! before training, after some steps, and by exact metrics. Policies that only round differently must be
//! accepted.

use std::cell::Cell;

use gfn::distribution::GraphActionCategorical;
use gfn::env::{Rows, StateGraph, VectorEnv, VectorStates};
use gfn::examples::word_env;
use gfn::graph::{GraphKind, GraphState, PerGraph};
use gfn::nn::{ConvKind, GraphNet, GraphNetConfig, GraphNetwork, MlpConfig, NormKind};
use gfn::objective::{DetailedBalance, LogPartitionVariance, Quantities};
use gfn::policy::{Evaluation, GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig};
use tch::{Device, Kind, Tensor};

use crate::nets;

const LETTERS: usize = 6;

/// The factor by which P_F's logits are multiplied. It depends on the batch.
#[derive(Clone, Copy)]
enum Factor {
    /// The factor is 1 plus this number times the number of states in the batch.
    PerState(f64),
    /// The factor is 1 plus this number times the mean of all entries of the batch's state vectors.
    Mean(f64),
}

/// A policy whose mistake is that its logits depend on the whole batch.
struct BatchDependent(MlpPolicy<KHot>, Cell<Factor>);

impl Policy<VectorEnv> for BatchDependent {
    fn evaluate(
        &self,
        env: &VectorEnv,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let mut given = self.0.evaluate(env, states, conditions, wants)?;
        let entries: f64 = states.rows().flatten().map(|&x| f64::from(x)).sum();
        let factor = match self.1.get() {
            Factor::PerState(share) => share * states.len() as f64,
            Factor::Mean(share) => share * entries / (states.len() * LETTERS) as f64,
        };
        if let Some(pf) = given.pf.take() {
            let n = pf.len() as i64;
            given.pf = Some(pf.scaled(&Tensor::full([n], 1.0 + factor, (Kind::Float, Device::Cpu)))?);
        }
        Ok(given)
    }

    fn parameters(&self) -> Option<&gfn::nn::Parameters> {
        Some(self.0.parameters())
    }
}

fn words() -> VectorEnv {
    word_env(2, LETTERS)
}

fn batch_dependent(factor: Factor, seed: u64) -> BatchDependent {
    tch::set_num_threads(1);
    let config = MlpPolicyConfig {
        mlp: MlpConfig { hidden: vec![16], ..MlpConfig::default() },
        ..MlpPolicyConfig::default()
    };
    let features = KHot::new(LETTERS, 3);
    let policy = MlpPolicy::new(&words(), features, config, Device::Cpu, Kind::Float, &mut Rng::seeded(seed));
    BatchDependent(policy.unwrap(), Cell::new(factor))
}

fn trainer(policy: BatchDependent) -> Result<Trainer<VectorEnv>> {
    let reward = |states: &VectorStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        Ok(states.rows().map(|row| row.iter().filter(|&&x| x == 1).count() as f64).collect())
    };
    let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
    Trainer::new(words(), reward, policy, LogPartitionVariance, config, Rng::seeded(1))
}

#[track_caller]
fn check_refused<T>(result: Result<T>) {
    let Err(error) = result else { panic!("no error") };
    let message = error.to_string();
    assert!(matches!(error, Error::Contract { .. }), "{message}");
    for words in ["probabilities that a policy gives a state", "in a batch of", "alone, in ["] {
        assert!(message.contains(words), "{words}: {message}");
    }
}

/// Tests policies whose logits depend slightly on the batch. The logits are multiplied by 1 plus 0.001 per
/// state of the batch, or by 1 plus a tenth of the mean of all entries of the batch's state vectors.
#[test]
fn a_slight_dependence_on_batch_mates_is_refused_before_training() {
    for seed in 0..8 {
        for factor in [Factor::PerState(1e-3), Factor::Mean(0.1), Factor::Mean(-0.1)] {
            check_refused(trainer(batch_dependent(factor, seed)));
        }
        trainer(batch_dependent(Factor::Mean(0.0), seed)).unwrap();
    }
}

#[test]
fn a_dependence_that_grows_is_refused_after_ten_and_a_hundred_steps() {
    for (grown, refused) in [(3, 10), (10, 10), (11, 100), (60, 100)] {
        let mut trainer = trainer(batch_dependent(Factor::Mean(0.0), 0)).unwrap();
        for _ in 0..grown {
            trainer.step().unwrap();
        }
        trainer.policy_as::<BatchDependent>().unwrap().1.set(Factor::Mean(0.1));
        let refusal = loop {
            match trainer.step() {
                Ok(_) => assert!(trainer.steps_done() <= refused, "{grown}"),
                Err(error) => break error,
            }
        };
        assert_eq!(trainer.steps_done(), refused, "{grown}");
        check_refused::<()>(Err(refusal));
        // After an error, the next step must repeat the check, until the check passes.
        check_refused(trainer.step());
        trainer.policy_as::<BatchDependent>().unwrap().1.set(Factor::Mean(0.0));
        trainer.step().unwrap();
    }
}

#[test]
fn exact_figures_refuse_a_policy_that_depends_on_batch_mates() {
    let space = StateGraph::build(&words(), 1_000).unwrap();
    for factor in [Factor::PerState(1e-4), Factor::Mean(0.1)] {
        check_refused(space.terminating_distribution(&words(), &batch_dependent(factor, 0), None));
    }
    space.terminating_distribution(&words(), &batch_dependent(Factor::Mean(0.0), 0), None).unwrap();
}

/// Tests that the checks of policy and reward have a separate random stream, so that they don't change the
/// random numbers of training.
#[test]
fn checks_change_no_random_number() {
    let losses = |again: bool| {
        let mut trainer = trainer(batch_dependent(Factor::Mean(0.0), 0)).unwrap();
        let step = |_| {
            if again {
                trainer.policy_changed();
            }
            trainer.step().unwrap().loss
        };
        (0..12).map(step).collect::<Vec<f64>>()
    };
    assert_eq!(losses(false), losses(true));
}

/// Tests that the check for dependence on the batch accepts every network of the library. The networks are in
/// single precision, and their weights are far from their initial values. Networks without normalisation have
/// large sums, whose rounding differs from batch to batch.
#[test]
fn no_network_of_the_library_is_refused() {
    tch::set_num_threads(1);
    tch::manual_seed(0);
    for conv in nets::CONVS {
        for norm in [NormKind::Layer, NormKind::Graph, NormKind::None] {
            if norm != NormKind::Layer && matches!(conv, ConvKind::Transformer { .. }) {
                continue;
            }
            for size in [0.0, 0.3, 1.0] {
                let kind = GraphKind::Undirected;
                let env = GraphBuilding::new(GraphBuildingConfig::new(kind, 4)).unwrap().into_env();
                let config = GraphNetConfig { norm, embedding: 16, layers: 3, ..nets::config(conv) };
                let net = GraphNet::new(&env, config, Device::Cpu, Kind::Float, &mut Rng::seeded(3)).unwrap();
                for parameter in net.parameters() {
                    let mut values = parameter.tensor.shallow_clone();
                    tch::no_grad(|| drop(values.f_add_(&(Tensor::randn_like(&parameter.tensor) * size))));
                }
                let named = format!("{conv:?} {norm:?} {size}");
                let reward = PerGraph(|graph: &GraphState| graph.n_edges() as f64);
                let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
                let policy = GraphPolicy(net);
                let made =
                    Trainer::new(env, reward, policy, DetailedBalance::default(), config, Rng::seeded(0));
                let trainer = made.unwrap_or_else(|error| panic!("{named}: {error}"));
                let space = StateGraph::build(trainer.env(), 100).unwrap();
                let exact = space.terminating_distribution(trainer.env(), trainer.policy(), None);
                exact.unwrap_or_else(|error| panic!("{named}: {error}"));
            }
        }
    }
}
