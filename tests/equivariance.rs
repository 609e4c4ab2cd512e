//! Tests policies that depend on labels. In an environment up to isomorphism a trainer must refuse them.

use crate::nets::{SeesLabels, config, net};
use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv};
use gfn::graph::{
    ActionSet, AddEdge, AddNode, Free, GraphBatch, GraphEnv, GraphKind, GraphSchema, GraphState, GraphStates,
    Semantics,
};
use gfn::nn::{ConvKind, EstimatorsConfig, GraphNet, GraphNetConfig, Parameters};
use gfn::nn::{GraphNetwork, NetworkOutput};
use gfn::objective::Quantities;
use gfn::objective::{LogPartitionVariance, TrajectoryBalance};
use gfn::policy::{Evaluation, GraphPolicy, Policy};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::ring::Ring;
use tch::{Kind, Tensor};

fn reward(graphs: &GraphStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(vec![0.0; graphs.graphs().len()])
}

fn trainer(policy: impl Policy<GraphEnv> + Send + 'static) -> Result<Trainer<GraphEnv>> {
    let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
    Trainer::new(ColoredGraphs::new(5)?.into_env(), reward, policy, TrajectoryBalance, config, Rng::seeded(7))
}

fn check_refused(error: &Error) {
    let message = error.to_string();
    assert!(matches!(error, Error::Contract { .. }), "{message}");
    for words in ["equivariant", "of one action is", "nodes", "under other labels"] {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn networks_that_see_labels_are_refused_and_others_are_not() {
    let env = ColoredGraphs::new(5).unwrap().into_env();
    for conv in [ConvKind::Gin, ConvKind::Transformer { heads: 4 }] {
        let config = GraphNetConfig { pair_walks: Some(2), ..config(conv) };
        let net = || net(&env, config.clone(), Kind::Float);
        trainer(GraphPolicy(net())).unwrap();
        check_refused(&trainer(GraphPolicy(SeesLabels::new(net(), &env))).unwrap_err());
    }
}

#[test]
fn networks_that_see_labels_are_refused_where_graphs_are_large_too() {
    // Isomorphic states aren't merged in a batch if graphs can have more than 8 nodes.
    let kind = GraphKind::Undirected;
    let actions =
        || ActionSet::new(Semantics::UpToIsomorphism).with(AddNode::free(1, 4)).with(AddEdge::new(1));
    let env = || {
        GraphEnv::new(Free, actions(), GraphState::new(kind))
            .and_then(|env| env.with_schema(GraphSchema::plain(kind, 9)))
            .unwrap()
    };
    let net = || net(&env(), config(ConvKind::Gin), Kind::Float);
    let with = |policy| {
        let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
        Trainer::new(env(), reward, policy, TrajectoryBalance, config, Rng::seeded(7)).map(|_| ())
    };
    with(GraphPolicy(SeesLabels::new(net(), &env()))).map_err(|error| check_refused(&error)).unwrap_err();
    let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
    Trainer::new(env(), reward, GraphPolicy(net()), TrajectoryBalance, config, Rng::seeded(7)).unwrap();
}

/// A network whose P_B depends on labels, and whose P_F doesn't.
struct SeesLabelsBackward(SeesLabels<GraphNet>);

impl GraphNetwork for SeesLabelsBackward {
    fn forward(&self, batch: &GraphBatch<'_>, wants: Quantities) -> Result<NetworkOutput> {
        let clean = self.0.net.forward(batch, wants)?;
        let seeing = self.0.forward(batch, wants)?;
        Ok(NetworkOutput { pb: seeing.pb, ..clean })
    }
    fn sees_symmetry(&self, direction: Direction) -> Option<gfn::graph::SymmetryCount> {
        self.0.net.sees_symmetry(direction)
    }
    fn parameters(&self) -> &Parameters {
        self.0.parameters()
    }
}

#[test]
fn backward_policies_are_checked_too() {
    let env = ColoredGraphs::new(5).unwrap().into_env();
    let net = net(&env, config(ConvKind::Gin), Kind::Float);
    let error = trainer(GraphPolicy(SeesLabelsBackward(SeesLabels::new(net, &env)))).unwrap_err();
    check_refused(&error);
    assert!(error.to_string().contains("(backward)"), "{error}");
}

#[test]
fn meaningful_labels_are_allowed() {
    let env = Ring::new(4, GraphKind::Directed).unwrap().into_env();
    let net = SeesLabels::new(net(&env, config(ConvKind::Directed), Kind::Float), &env);
    let config = TrainerConfig::default();
    Trainer::new(env, reward, GraphPolicy(net), LogPartitionVariance, config, Rng::seeded(7)).unwrap();
}

#[test]
fn checks_use_no_number_of_the_trainers_stream() {
    let net = net(&ColoredGraphs::new(5).unwrap().into_env(), config(ConvKind::Gin), Kind::Float);
    let trainer = trainer(GraphPolicy(net)).unwrap();
    let mut own = trainer.evaluation_rng();
    let mut expected = Rng::seeded(7).split();
    assert_eq!(
        (0..4).map(|_| own.below(1 << 30)).collect::<Vec<_>>(),
        (0..4).map(|_| expected.below(1 << 30)).collect::<Vec<_>>()
    );
}

/// A policy that gives the exit all probability except for values that underflow, whatever the labels are.
struct UnderflowPolicy;

impl Policy<GraphEnv> for UnderflowPolicy {
    fn evaluate(
        &self,
        env: &GraphEnv,
        states: &GraphStates,
        _: Option<&Tensor>,
        _: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let masks = env.masks(Direction::Forward, states);
        // The logit of the exit exceeds all other logits by 2,000, so the probabilities of the other actions
        // underflow.
        let blocks: Vec<Tensor> = masks
            .blocks
            .iter()
            .enumerate()
            .map(|(k, block)| {
                let size = [block.rows() as i64, block.width as i64];
                let logit = if k + 1 == masks.blocks.len() { 0.0 } else { -2000.0 };
                Tensor::full(size, logit, (Kind::Float, tch::Device::Cpu))
            })
            .collect();
        let pf = GraphActionCategorical::new(masks, &blocks)?;
        Ok(Evaluation { pf: Some(pf), ..Evaluation::default() })
    }
}

#[test]
fn probabilities_that_vanish_alike_are_no_difference() {
    trainer(UnderflowPolicy).unwrap();
}

#[test]
fn a_policy_with_conditions_is_checked_by_the_first_step() {
    let env = ColoredGraphs::new(5).unwrap().into_env();
    let config = GraphNetConfig {
        estimators: EstimatorsConfig { flow: true, ..EstimatorsConfig::conditional(2) },
        ..config(ConvKind::Gin)
    };
    let net = || net(&env, config.clone(), Kind::Float);
    let conditions = |n: usize, rng: &mut Rng| -> Result<Tensor> {
        let values: Vec<f64> = (0..2 * n).map(|_| rng.uniform()).collect();
        Ok(Tensor::from_slice(&values).view([n as i64, 2]))
    };
    trainer(GraphPolicy(net())).unwrap().with_conditions(conditions).step().unwrap();
    check_refused(
        &trainer(GraphPolicy(SeesLabels::new(net(), &env)))
            .unwrap()
            .with_conditions(conditions)
            .step()
            .unwrap_err(),
    );
}
