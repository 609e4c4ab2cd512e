//! A checkpoint says what it is of, and a run resumes from none but its own kind.
use gfn::graph::GraphEnv;
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::policy::GraphPolicy;
use gfn::testing::Triangles;
use gfn::train::{Checkpoint, Trainer, TrainerConfig};
use gfn::{Error, Result, Rng, graph::GraphStates};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Described {
    nodes: usize,
    network: GraphNetConfig,
}

fn trainer() -> Trainer<GraphEnv<Triangles>, GraphPolicy<GraphNet>> {
    let (env, mut rng) = (Triangles::new(), Rng::seeded(0));
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
