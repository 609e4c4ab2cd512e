//! Tests that a trainer returns an error for a policy whose probabilities in a state depend on other states
//! of the batch, or on chance.

use std::any::type_name;
use std::cell::Cell;

use gfn::distribution::GraphActionCategorical;
use gfn::env::{Direction, DiscreteEnv, Reals, Rows, VectorEnv, VectorStates};
use gfn::graph::{GraphBatch, GraphEnv, GraphKind, GraphStates};
use gfn::nn::{
    BackwardPolicy, Embeddings, Engine, GraphNet, GraphNetConfig, Linear, MlpConfig, Scope, TensorTorso,
    Torso,
};
use gfn::objective::Quantities;
use gfn::objective::{LogPartitionVariance, ModifiedDetailedBalance, TrajectoryBalance};
use gfn::policy::{
    Evaluation, GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy, UniformPolicy, WithPrior,
};
use gfn::train::{Trainer, TrainerConfig};
use gfn::{Error, Result, Rng};
use gfn_extras::explore::{Teacher, TeacherConfig};
use gfn_gym::boxes::{BoxEnv, BoxPolicy, BoxPolicyConfig};
use gfn_gym::discrete_ebm::DiscreteEbm;
use gfn_gym::ring::Ring;
use tch::{Device, Kind, Tensor};

fn zero<S: Rows>(states: &S, _: Option<&Tensor>) -> Result<Vec<f64>> {
    Ok(vec![0.0; states.len()])
}

fn ring() -> GraphEnv {
    Ring::new(3, GraphKind::Directed).unwrap().into_env()
}

fn train(policy: impl Policy<GraphEnv> + Send + 'static) -> Result<()> {
    let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
    Trainer::new(ring(), zero, policy, ModifiedDetailedBalance::default(), config, Rng::seeded(1)).map(|_| ())
}

fn check_refused(result: Result<()>, direction: &str) {
    let error = result.unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, Error::Contract { .. }), "{message}");
    for words in [
        "probabilities that a policy gives a state",
        "batch normalisation",
        direction,
        "in a batch of",
        "edge",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
}

/// The quantity from which a policy computes some of its logits.
#[derive(Clone, Copy, Debug)]
enum Logit {
    /// The number of edges of the state's graph. A policy may depend on it.
    Edges,
    /// The mean number of edges of the graphs in the batch. A policy must not depend on it.
    MeanEdges,
    /// A random number, which is drawn anew at each call. A policy must not depend on it.
    Chance,
    /// The value NaN, which isn't a valid logit.
    NotANumber,
}

/// A policy whose logits are 0 except in one direction. There, the first column of each action type's logits
/// is computed from the quantity that the [`Logit`] names.
#[derive(Debug)]
struct LogitPolicy(Logit, Direction);

impl Policy<GraphEnv> for LogitPolicy {
    fn evaluate(
        &self,
        env: &GraphEnv,
        states: &GraphStates,
        _: Option<&Tensor>,
        _: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let edges: Vec<f32> = states.graphs().iter().map(|graph| graph.n_edges() as f32).collect();
        let n = edges.len();
        let mean = edges.iter().sum::<f32>() / n as f32;
        // The quantity that the `Logit` names is either a number per graph, or one number for all graphs.
        let (of_graph, of_all) = match self.0 {
            Logit::Edges => (Some(Tensor::from_slice(&edges).view([-1, 1])), 0.0),
            Logit::MeanEdges => (None, f64::from(mean)),
            Logit::NotANumber => (None, f64::NAN),
            Logit::Chance => (None, Tensor::rand([1], (Kind::Double, Device::Cpu)).double_value(&[0])),
        };
        let dist = |direction: Direction| {
            let masks = env.masks(direction, states);
            let blocks = masks.blocks.iter().map(|block| {
                let rows = block.rows() as i64;
                let width = block.width as i64;
                let zeros = Tensor::zeros([rows, width], (Kind::Float, Device::Cpu));
                // If an action type has one row of logits per graph, each row gets `of_all`. If it has other
                // rows, for example one per edge, row `k` gets `of_all` times `k` (modulo 9), so that the
                // rows differ: if all logits of a state were equal, the softmax would ignore `of_all`.
                let place = Tensor::arange(rows, (Kind::Float, Device::Cpu)).remainder(9).view([-1, 1]);
                let first = if rows == n as i64 { place.full_like(of_all) } else { place * of_all };
                let first =
                    of_graph.as_ref().filter(|_| rows == n as i64).map_or(first, Tensor::shallow_clone);
                if direction == self.1 && rows > 0 { zeros.slice_scatter(&first, 1, 0, 1, 1) } else { zeros }
            });
            let blocks: Vec<Tensor> = blocks.collect();
            GraphActionCategorical::new(masks, &blocks)
        };
        Ok(Evaluation {
            pf: Some(dist(Direction::Forward)?),
            pb: Some(dist(Direction::Backward)?),
            ..Evaluation::default()
        })
    }
}

#[test]
fn policies_that_depend_on_the_batch_are_refused() {
    check_refused(train(LogitPolicy(Logit::MeanEdges, Direction::Forward)), "forward");
    check_refused(train(LogitPolicy(Logit::MeanEdges, Direction::Backward)), "backward");
}

#[test]
fn random_policies_are_refused() {
    check_refused(train(LogitPolicy(Logit::Chance, Direction::Forward)), "forward");
}

/// Tests policies whose logits are NaN. NaN differs from itself, but the error must not report a dependence
/// on labels or on the batch.
#[test]
fn policies_that_give_nan_are_reported() {
    for direction in [Direction::Forward, Direction::Backward] {
        let error = train(LogitPolicy(Logit::NotANumber, direction)).unwrap_err();
        assert!(matches!(error, Error::NonFinite { value, .. } if value.is_nan()), "{error}");
    }
}

/// A policy like [`LogitPolicy`], except that the quantity for its forward logits can be changed during a
/// run.
struct ChangeableLogit(Cell<Logit>);

impl Policy<GraphEnv> for ChangeableLogit {
    fn evaluate(
        &self,
        env: &GraphEnv,
        states: &GraphStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        LogitPolicy(self.0.get(), Direction::Forward).evaluate(env, states, conditions, wants)
    }
}

#[test]
fn a_changed_policy_is_checked_until_it_passes() {
    let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
    let policy = ChangeableLogit(Cell::new(Logit::Edges));
    let objective = LogPartitionVariance;
    let mut trainer = Trainer::new(ring(), zero, policy, objective, config, Rng::seeded(1)).unwrap();
    trainer.policy_as::<ChangeableLogit>().unwrap().0.set(Logit::MeanEdges);
    // The trainer doesn't notice the change before `policy_changed` is called.
    trainer.step().unwrap();
    trainer.policy_changed();
    for _ in 0..2 {
        check_refused(trainer.step().map(|_| ()), "forward");
    }
    trainer.policy_as::<ChangeableLogit>().unwrap().0.set(Logit::Edges);
    trainer.step().unwrap();
}

#[test]
fn policies_that_depend_on_the_state_are_accepted() {
    train(LogitPolicy(Logit::Edges, Direction::Forward)).unwrap();
}

/// A policy whose mistake is that its P_F logits are multiplied by the batch size.
struct BatchSizePolicy(MlpPolicy<KHot>);

impl Policy<VectorEnv> for BatchSizePolicy {
    fn evaluate(
        &self,
        env: &VectorEnv,
        states: &VectorStates,
        conditions: Option<&Tensor>,
        wants: Quantities,
    ) -> Result<Evaluation<GraphActionCategorical>> {
        let mut given = self.0.evaluate(env, states, conditions, wants)?;
        if let Some(pf) = given.pf.take() {
            let n = pf.len() as i64;
            given.pf = Some(pf.scaled(&Tensor::full([n], 1.0 + n as f64, (Kind::Float, Device::Cpu)))?);
        }
        Ok(given)
    }
}

#[test]
fn policies_are_checked_on_long_trajectories_too() {
    for spins in [60, 65, 100] {
        let env = DiscreteEbm::new(spins).unwrap().env();
        let config = MlpPolicyConfig {
            mlp: MlpConfig { hidden: vec![16], ..MlpConfig::default() },
            ..MlpPolicyConfig::default()
        };
        let policy =
            MlpPolicy::new(&env, KHot::new(spins, 3), config, Device::Cpu, Kind::Float, &mut Rng::seeded(0));
        let config = TrainerConfig { batch: 8, ..TrainerConfig::default() };
        let made = Trainer::new(
            env,
            zero,
            BatchSizePolicy(policy.unwrap()),
            TrajectoryBalance,
            config,
            Rng::seeded(0),
        );
        let message = made.map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("probabilities that a policy gives a state"), "{spins}: {message}");
    }
}

/// A torso that embeds nodes by their degrees. The degrees are normalised over the batch or by constants,
/// or dropout is applied to them.
#[derive(Debug)]
struct Degrees {
    layer: Linear,
    norm: Norm,
}

#[derive(Clone, Copy, Debug)]
enum Norm {
    Batch,
    Fixed,
    Dropout,
}

impl TensorTorso for Degrees {
    fn widths(&self) -> (i64, i64) {
        (8, 8)
    }

    fn embed(&self, batch: &GraphBatch<'_>, _: Option<&Tensor>) -> Result<Embeddings> {
        let ends = batch.edge_index().get(0);
        let x = Tensor::zeros([batch.node_graph().size()[0], 1], (Kind::Float, Device::Cpu));
        let x = x.index_add(0, &ends, &Tensor::ones([ends.size()[0], 1], (Kind::Float, Device::Cpu)));
        let none = None::<Tensor>;
        let x = match self.norm {
            Norm::Batch => x.batch_norm(
                none.as_ref(),
                none.as_ref(),
                none.as_ref(),
                none.as_ref(),
                true,
                0.1,
                1e-5,
                false,
            ),
            Norm::Fixed => (x - 1.0) / 2.0,
            Norm::Dropout => x.dropout(0.5, true),
        };
        let nodes = self.layer.forward(&x);
        let graphs = Tensor::zeros([batch.len() as i64, 8], (Kind::Float, Device::Cpu));
        let graphs = graphs.index_add(0, batch.node_graph(), &nodes);
        Ok(Embeddings { nodes, graphs })
    }
}

#[test]
fn batch_normalisation_and_dropout_of_libtorch_are_refused() {
    let with = |norm: Norm| {
        let config = GraphNetConfig { backward: BackwardPolicy::SharedTorso, ..GraphNetConfig::default() };
        let torso =
            |scope: &mut Scope<'_>| Degrees { layer: Linear::new(&mut scope.sub("layer"), 1, 8), norm };
        let net = GraphNet::with_tensor_torso(
            &ring(),
            torso,
            config,
            Device::Cpu,
            Kind::Float,
            &mut Rng::seeded(2),
        )
        .unwrap();
        let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
        Trainer::new(ring(), zero, GraphPolicy(net), TrajectoryBalance, config, Rng::seeded(1)).map(|_| ())
    };
    with(Norm::Fixed).unwrap();
    check_refused(with(Norm::Batch), "forward");
    check_refused(with(Norm::Dropout), "forward");
}

#[test]
fn a_prior_is_checked_too() {
    let with = |logit: Logit| {
        train(WithPrior { policy: UniformPolicy, prior: LogitPolicy(logit, Direction::Forward) })
    };
    with(Logit::Edges).unwrap();
    check_refused(with(Logit::MeanEdges), "of the prior");
    // A backward policy of the prior that depends on other states of the batch must be accepted, because it
    // is never used.
    train(WithPrior { policy: UniformPolicy, prior: LogitPolicy(Logit::MeanEdges, Direction::Backward) })
        .unwrap();
}

#[test]
fn a_teacher_is_checked_too() {
    let net = |norm: Norm| {
        let config = GraphNetConfig { backward: BackwardPolicy::SharedTorso, ..GraphNetConfig::default() };
        let torso =
            |scope: &mut Scope<'_>| Degrees { layer: Linear::new(&mut scope.sub("layer"), 1, 8), norm };
        GraphNet::with_tensor_torso(&ring(), torso, config, Device::Cpu, Kind::Float, &mut Rng::seeded(2))
            .unwrap()
    };
    let with = |norm: Norm| {
        let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
        let student = GraphPolicy(net(Norm::Fixed));
        Trainer::new(ring(), zero, student, TrajectoryBalance, config, Rng::seeded(1))
            .and_then(|trainer| {
                let teacher = Teacher::new(trainer.env(), GraphPolicy(net(norm)), TeacherConfig::default())?;
                trainer.with_source(0.5, teacher)
            })
            .map(|_| ())
    };
    with(Norm::Fixed).unwrap();
    check_refused(with(Norm::Batch), "forward");
}

/// A torso that embeds nodes by multiples of their labels. The computation on the host uses another
/// multiple, which is a mistake.
#[derive(Clone, Debug)]
struct Labels {
    on_host: f64,
}

impl Torso for Labels {
    fn widths(&self) -> (i64, i64) {
        (8, 8)
    }

    fn embed<E: Engine>(&self, engine: &E, _: Option<&E::Rows>) -> Result<Embeddings<E::Rows>> {
        let is_on_host = type_name::<E::Rows>() != type_name::<Tensor>();
        let factor = if is_on_host { self.on_host } else { 1.0 };
        let nodes: Vec<f64> =
            engine.arrays().labels.iter().flat_map(|&label| [factor * f64::from(label); 8]).collect();
        let graphs = vec![0.0; engine.arrays().len() * 8];
        Ok(Embeddings { nodes: engine.rows(&nodes, 8), graphs: engine.rows(&graphs, 8) })
    }
}

#[test]
fn a_form_on_the_host_that_is_another_policy_is_refused() {
    let with = |on_host: f64| {
        let config = GraphNetConfig { backward: BackwardPolicy::SharedTorso, ..GraphNetConfig::default() };
        let torso = |_: &mut Scope<'_>| Labels { on_host };
        let net = GraphNet::with_torso(&ring(), torso, config, Device::Cpu, Kind::Float, &mut Rng::seeded(2))
            .unwrap();
        let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
        Trainer::new(ring(), zero, GraphPolicy(net), TrajectoryBalance, config, Rng::seeded(1)).map(|_| ())
    };
    with(1.0).unwrap();
    let message = with(2.0).unwrap_err().to_string();
    for words in ["samples from the distribution that is trained", "on the host", "forward", "edge"] {
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn policies_over_points_pass_the_checks() {
    let env = BoxEnv::cartesian(2, 0.25).unwrap();
    let policy =
        BoxPolicy::new(&env, BoxPolicyConfig::default(), Device::Cpu, Kind::Float, &mut Rng::seeded(3))
            .unwrap();
    let reward = |states: &Reals, _: Option<&Tensor>| zero(states, None);
    Trainer::new(env, reward, policy, TrajectoryBalance, TrainerConfig::default(), Rng::seeded(1)).unwrap();
}
