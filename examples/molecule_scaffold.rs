//! Decorations of a scaffold: pyridine with two places where something may be attached, in proportion to a score; its atoms and bonds stay.

use std::error::Error;

use gfn::env::StateGraph;
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::optim::Schedule;
use gfn::policy::GraphPolicy;
use gfn::rollout::Sampler;
use gfn::runtime::{DeviceKind, Runtime};
use gfn::train::{Fit, Trainer, TrainerConfig};
use gfn::{Rng, tch};
use gfn_molecules::fragments::Fragment;
use gfn_molecules::{Element, Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward};
use gfn_plot::Table;

const STEPS: usize = 400;

fn main() -> Result<(), Box<dyn Error>> {
    let (runtime, mut rng) = (Runtime::new(1, DeviceKind::Cpu)?, Rng::seeded(0));
    // Or by the numbers of its atoms: `Fragment::new("c1ccncc1", &[1, 5])`.
    let scaffold = Fragment::from_marked("c1c([*:1])cncc1[*:2]")?;
    let elements = vec![Element::C, Element::N, Element::O, Element::F];
    let max_atoms = scaffold.molecule().atoms().len() + 3;
    let config =
        MoleculeConfig { elements, charges: Vec::new(), scaffold: Some(scaffold), ..MoleculeConfig::new(max_atoms) };
    let env = MoleculeEnv::new(config)?;
    let codec = env.codec().clone();
    let reward = MoleculeReward::new(&codec, |molecule: &Molecule| 0.1 + molecule.heteroatom_share());
    let network = GraphNetConfig {
        conv: ConvKind::Gine,
        layers: 3,
        embedding: 64,
        pair_walks: Some(3),
        backward: BackwardPolicy::SharedTorso,
        ..GraphNetConfig::default()
    };
    let net = GraphNet::new(&env, network, runtime.device(), tch::Kind::Float, &mut rng)?;
    let config = TrainerConfig {
        batch: 64,
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: STEPS },
        ..TrainerConfig::default()
    };
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng)?;
    Fit::new(STEPS).run(&mut trainer)?;

    let (env, policy) = (trainer.env(), trainer.policy());
    let space = StateGraph::build(env, 100_000)?;
    let target = space.target_distribution(trainer.reward(), None)?;
    let learned = space.terminating_distribution(env, policy, None)?;
    let tv = Distances::between(&learned.probs, &target.probs)?.tv;
    let samples = Sampler::new(env, policy).forward(10, &mut trainer.evaluation_rng())?;
    let mut table = Table::new(["SMILES", "hetero atoms"]);
    for graph in samples.terminal_states().graphs() {
        let molecule = codec.molecule(graph)?;
        table.push([molecule.smiles().into(), molecule.heteroatom_share().into()]);
    }
    println!("{table}\nTotal variation {tv:.4} over {} decorations.", space.len());
    Ok(())
}
