//! A checkpoint says what it is of, and a run resumes from none but its own kind.
use gfn::error::Warning;
use gfn::graph::{ActionSet, AddEdge, GraphEnv, GraphKind, GraphRules, GraphState, PerGraph, Semantics};
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::policy::GraphPolicy;
use gfn::run::OnWarning;
use gfn::testing::Triangles;
use gfn::train::{Checkpoint, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng, graph::GraphStates};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Described {
    nodes: usize,
    network: GraphNetConfig,
}

fn trainer() -> Trainer<GraphEnv> {
    let (env, mut rng) = (Triangles::env(), Rng::seeded(0));
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
    let described = || Described { nodes: 3, network: GraphNetConfig::default() };
    let mut first = trainer().described_by(&described()).unwrap();
    first.step().unwrap();
    first.save(&path).unwrap();
    let checkpoint = Checkpoint::load(&path).unwrap();
    assert_eq!(checkpoint.description::<Described>().unwrap(), described());
    let error = checkpoint.description::<u32>().unwrap_err();
    assert!(
        matches!(&error, Error::File { .. }) && error.to_string().contains("what it is a checkpoint of"),
        "{error}"
    );

    let mut same = trainer().described_by(&described()).unwrap();
    same.resume(&path).unwrap();
    assert_eq!(same.step().unwrap().loss, first.step().unwrap().loss);
    let mut other = trainer().described_by(&Described { nodes: 4, ..described() }).unwrap();
    let error = other.resume(&path).unwrap_err();
    assert!(
        error.to_string().contains("another run: `nodes` is 3 there and 4 here: resume"),
        "what differs alone: {error}"
    );
    assert_eq!(other.steps_done(), 0);
    std::fs::remove_dir_all(&path).unwrap();
}

/// Edges on three nodes; `shy` graphs without edges can't be finished.
struct Rules {
    shy: bool,
}

impl GraphRules for Rules {
    fn can_exit(&self, graph: &GraphState) -> bool {
        !self.shy || graph.n_edges() > 0
    }
}

type Run = Trainer<GraphEnv>;

/// A run whose objects are worth so much an edge.
fn run(shy: bool, per_edge: f64, config: TrainerConfig) -> Run {
    let (kind, actions) = (GraphKind::Undirected, ActionSet::new(Semantics::Labelled).with(AddEdge::new(1)));
    let initial = GraphState::with_nodes(kind, 3);
    let (env, mut rng) = (GraphEnv::new(Rules { shy }, actions, initial), Rng::seeded(0));
    let network = GraphNetConfig { embedding: 8, ..GraphNetConfig::default() };
    let env = env.unwrap();
    let net = GraphNet::new(&env, network, tch::Device::Cpu, tch::Kind::Float, &mut rng).unwrap();
    let reward = PerGraph(move |graph: &GraphState| per_edge * graph.n_edges() as f64);
    Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap()
}

/// Under other settings, rules or rewards a run goes on as another one: it says so, or fails where warnings do.
#[test]
fn a_resumed_run_says_what_is_changed() {
    let path = std::env::temp_dir().join(format!("gfn-changed-{}", std::process::id()));
    let config = |batch, on_warning| TrainerConfig { batch, on_warning, ..TrainerConfig::default() };
    let kept = |batch| config(batch, OnWarning::Keep);
    let mut first = run(true, 1.0, kept(8));
    first.step().unwrap();
    first.save(&path).unwrap();
    let resumed = |mut run: Run| {
        run.resume(&path).map(|()| {
            assert!(run.steps_done() > 0);
            run.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        })
    };
    assert_eq!(resumed(run(true, 1.0, kept(8))).unwrap(), "");
    let cases = [
        (run(true, 1.0, kept(9)), "`batch` is 8 there and 9 here"),
        (run(true, 2.0, kept(8)), "there and 2 here"),
        (run(false, 1.0, kept(8)), "allows other actions"),
    ];
    for (run, words) in cases {
        let said = resumed(run).unwrap();
        assert!(said.contains("resumed at step 1 as another run") && said.contains(words), "{words}: {said}");
    }
    let mut strict = run(true, 2.0, config(8, OnWarning::Fail));
    let error = strict.resume(&path).unwrap_err();
    assert!(matches!(error, Error::Warned(Warning::Resumed { step: 1, .. })), "{error}");
    assert_eq!(strict.steps_done(), 0);

    // A checkpoint that is written before the next step remembers what the first one did.
    let mut second = run(true, 1.0, kept(8));
    second.resume(&path).unwrap();
    second.save(&path).unwrap();
    assert!(resumed(run(true, 2.0, kept(8))).unwrap().contains("there and 2 here"));
    // A graph without edges can be finished without the rule; with it that walk can't be taken.
    let mut free = run(false, 1.0, kept(64));
    let without_edges = (0..50).any(|_| {
        free.step().unwrap();
        free.latest().unwrap().terminal_states().graphs()[..4].iter().any(|graph| graph.n_edges() == 0)
    });
    assert!(without_edges);
    free.save(&path).unwrap();
    assert!(resumed(run(true, 1.0, kept(64))).unwrap().contains("can't be taken in this environment"));
    std::fs::remove_dir_all(&path).unwrap();
}
