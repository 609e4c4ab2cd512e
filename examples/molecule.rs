//! Trains a policy to build molecules atom by atom, with a reward for atoms other than carbon.

use std::error::Error;
use std::fs;

use gfn::prelude::*;
use gfn_molecules::{Element, Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward};
use gfn_plot::{PictureSheet, Table};

const STEPS: usize = 1_000;

/// Returns the reward of a molecule. Any function of a molecule can be a reward, if its values are above 0.
fn score(molecule: &Molecule) -> f64 {
    0.1 + molecule.heteroatom_share()
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let mut rng = Rng::seeded(0);
    let elements = vec![Element::C, Element::N, Element::O];
    let molecules =
        MoleculeEnv::new(MoleculeConfig { elements, charges: Vec::new(), ..MoleculeConfig::new(3) })?;
    let env = molecules.env().clone();
    let codec = molecules.codec().clone();
    let reward = MoleculeReward::new(&codec, score);

    let network = GraphNetConfig {
        conv: ConvKind::Gine,
        layers: 3,
        embedding: 64,
        // The network distinguishes atoms by element and neighbours, and doesn't see node numbers.
        identity: false,
        pair_walks: Some(3),
        backward: BackwardPolicy::SharedTorso,
        ..GraphNetConfig::default()
    };
    let net = GraphNet::new(&env, network, runtime.device(), Kind::Float, &mut rng)?;
    let config = TrainerConfig {
        batch: 64,
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: STEPS },
        ..TrainerConfig::default()
    };
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng)?;
    Fit::new(STEPS).run(&mut trainer)?;

    // The distance is exact. All molecules of at most three atoms are listed, up to isomorphism.
    let env = trainer.env();
    let policy = trainer.policy();
    let space = StateGraph::build(env, 10_000)?;
    let target = space.target_distribution(&MoleculeReward::new(&codec, score), None)?;
    let learned = space.terminating_distribution(env, policy, None)?;
    let tv = Distances::between(&learned.probs, &target.probs)?.tv;

    let samples = Sampler::new(env, policy).forward(12, &mut trainer.evaluation_rng())?;
    let mut table = Table::new(["SMILES", "score"]);
    let mut sheet = PictureSheet::new("samples", 160.0);
    for graph in samples.terminal_states().graphs() {
        let molecule = codec.molecule(graph)?;
        let smiles = molecule.smiles();
        let score = score(&molecule);
        sheet = sheet.cell(molecule.drawing(160.0, 160.0), [smiles.clone(), format!("score {score:.2}")]);
        table.push([smiles.into(), score.into()]);
    }
    fs::create_dir_all("out")?;
    sheet.write("out/molecule.svg")?;
    println!(
        "{table}\nTotal variation {tv:.4} over {} molecules; samples are drawn in out/molecule.svg.",
        space.ends().len()
    );
    Ok(())
}
