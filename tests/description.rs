//! Tests of the description in a checkpoint. A run may only resume from a checkpoint with a matching
//! description.
use gfn::error::Warning;
use gfn::examples::Triangles;
use gfn::graph::{ActionSet, AddEdge, GraphEnv, GraphKind, GraphRules, GraphState, PerGraph, Semantics};
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::policy::GraphPolicy;
use gfn::run::{Fit, OnWarning};
use gfn::train::{Checkpoint, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng, graph::GraphStates};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Description {
    nodes: usize,
    network: GraphNetConfig,
}

fn trainer() -> Trainer<GraphEnv> {
    let env = Triangles::env();
    let mut rng = Rng::seeded(0);
    let config = GraphNetConfig { embedding: 8, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, config, tch::Device::Cpu, tch::Kind::Float, &mut rng).unwrap();
    let reward = |graphs: &GraphStates, _: Option<&tch::Tensor>| -> Result<Vec<f64>> {
        Ok(graphs.graphs().iter().map(|graph| graph.n_edges() as f64).collect())
    };
    let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
    Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap()
}

#[test]
fn a_checkpoint_says_what_it_is_of() {
    let path = std::env::temp_dir().join(format!("gfn-description-{}", std::process::id()));
    let described = || Description { nodes: 3, network: GraphNetConfig::default() };
    let mut first = trainer().with_description(&described()).unwrap();
    first.step().unwrap();
    first.save(&path).unwrap();
    let checkpoint = Checkpoint::load(&path).unwrap();
    assert_eq!(checkpoint.description::<Description>().unwrap(), described());
    let error = checkpoint.description::<u32>().unwrap_err();
    assert!(
        matches!(&error, Error::File { .. })
            && error.to_string().contains("no description of the requested type"),
        "{error}"
    );

    let mut same = trainer().with_description(&described()).unwrap();
    same.resume(&path).unwrap();
    assert_eq!(same.step().unwrap().loss, first.step().unwrap().loss);
    let mut other = trainer().with_description(&Description { nodes: 4, ..described() }).unwrap();
    let error = other.resume(&path).unwrap_err();
    assert!(
        error.to_string().contains("another run: `nodes` is 3 there and 4 here: resume"),
        "what differs alone: {error}"
    );
    assert_eq!(other.steps_done(), 0);
    std::fs::remove_dir_all(&path).unwrap();
}

/// Rules for edges on three nodes. If `shy` is `true`, graphs without edges can't be finished.
struct Rules {
    shy: bool,
}

impl GraphRules for Rules {
    fn can_exit(&self, graph: &GraphState) -> bool {
        !self.shy || graph.n_edges() > 0
    }
}

type Run = Trainer<GraphEnv>;

/// Builds a trainer whose log-reward is `per_edge` times the number of edges.
fn run(shy: bool, per_edge: f64, config: TrainerConfig) -> Run {
    let kind = GraphKind::Undirected;
    let actions = ActionSet::new(Semantics::Labelled).with(AddEdge::new(1));
    let initial = GraphState::with_nodes(kind, 3);
    let env = GraphEnv::new(Rules { shy }, actions, initial);
    let mut rng = Rng::seeded(0);
    let network = GraphNetConfig { embedding: 8, ..GraphNetConfig::default() };
    let env = env.unwrap();
    let net = GraphNet::new(&env, network, tch::Device::Cpu, tch::Kind::Float, &mut rng).unwrap();
    let reward = PerGraph(move |graph: &GraphState| per_edge * graph.n_edges() as f64);
    Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap()
}

/// Tests a run that is resumed with other settings. The run must report the changes, or fail if warnings
/// are errors.
#[test]
fn a_resumed_run_says_what_is_changed() {
    let path = std::env::temp_dir().join(format!("gfn-changed-{}", std::process::id()));
    let kept = |batch| TrainerConfig { batch, ..TrainerConfig::default() };
    let mut first = run(true, 1.0, kept(8));
    first.step().unwrap();
    first.save(&path).unwrap();
    let resumed = |mut run: Run| {
        run.resume(&path).map(|()| {
            assert!(run.steps_done() > 0);
            run.resume_warning().map(ToString::to_string).unwrap_or_default()
        })
    };
    assert_eq!(resumed(run(true, 1.0, kept(8))).unwrap(), "");
    let message = resumed(run(true, 1.0, kept(9))).unwrap();
    assert!(
        message.contains("resumed at step 1 with other settings")
            && message.contains("`batch` is 8 there and 9 here"),
        "{message}"
    );
    // The loop must report the change before its first step. Warnings are errors in this run, so the run must
    // fail.
    let mut strict = run(true, 1.0, kept(9));
    strict.resume(&path).unwrap();
    let error = Fit::new(2).on_warning(OnWarning::Fail).run(&mut strict).unwrap_err();
    assert!(matches!(error, Error::Warned(Warning::Resumed { step: 1, .. })), "{error}");
    assert_eq!(strict.steps_done(), 1);
    std::fs::remove_dir_all(&path).unwrap();
}
