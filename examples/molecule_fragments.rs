//! Samples molecules from fragments of given molecules. A policy is first trained on the molecules of a file
//! by maximum likelihood. Then a copy is fine-tuned to a reward by relative trajectory balance, with the
//! first policy as prior. The copy samples in proportion to the prior's probability times the reward.

use std::error::Error;

use gfn::objective::{MaximumLikelihood, RelativeTrajectoryBalance};
use gfn::policy::WithPrior;
use gfn::prelude::*;
use gfn::replay::DataSource;
use gfn::train::{Checkpoint, ReplayPath};
use gfn_molecules::fragments::{FragmentReward, Fragments, Vocabulary};
use gfn_molecules::{Cleanup, Molecule, MoleculeReader};
use gfn_plot::Table;

const STEPS: usize = 300;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new(1, DeviceKind::Cpu)?;
    let mut rng = Rng::seeded(0);
    let path = std::env::args().nth(1).unwrap_or_else(|| "examples/data/molecules.smi".into());
    // States are trees of at most five fragments. The sixty most frequent fragments of the file are used.
    let vocabulary = Vocabulary::read(&path)?;
    let library = vocabulary.library(60)?;
    let fragments = Fragments::new(&library, 5)?;
    let env = fragments.env().clone();
    let mut trees = Vec::new();
    for molecule in MoleculeReader::open(&path)?.with_cleanup(Cleanup::ALL) {
        trees.extend(fragments.trees(&molecule?, 10)?);
    }
    println!("{}\n{} trees of {} fragments", vocabulary.report(), trees.len(), library.fragments().len());

    // The data set holds each tree with one backward trajectory. Training uses only the tree:
    // `UniformBackward` below means that a new backward trajectory is drawn each time.
    let states = GraphStates::from(trees);
    let walks = Sampler::new(&env, &UniformPolicy).backward(&states, &mut rng)?.walks(&env)?;
    let capacity = states.graphs().len();
    let mut data =
        ReplayBuffer::new(ReplayConfig { capacity, eviction: Eviction::Fifo, draw: Draw::Uniform })?;
    data.add(&env, &walks, &vec![0.0; capacity])?;
    let network = GraphNetConfig {
        conv: ConvKind::Gine,
        layers: 3,
        embedding: 64,
        backward: BackwardPolicy::Uniform,
        ..GraphNetConfig::default()
    };
    let config = TrainerConfig { batch: 64, ..TrainerConfig::default() };
    let offline = TrainerConfig {
        source: DataSource::new(0.0, 0.0, 1.0)?,
        replay_path: ReplayPath::UniformBackward,
        ..config.clone()
    };
    let polar = |molecule: &Molecule| (6.0 * molecule.heteroatom_share()).exp();
    let net = |rng: &mut Rng| GraphNet::new(&env, network.clone(), runtime.device(), Kind::Float, rng);
    let reward = FragmentReward::new(&library, polar);
    let policy = GraphPolicy(net(&mut rng)?);
    let mut learner =
        Trainer::new(env.clone(), reward.clone(), policy, MaximumLikelihood, offline, rng.split())?;
    learner = learner.with_data(data);
    Fit::new(STEPS).run(&mut learner)?;

    let before = Sampler::new(learner.env(), learner.policy()).forward(10, &mut learner.evaluation_rng())?;
    // The trained policy becomes the prior, which stays fixed. A copy of the policy is fine-tuned.
    let prior = learner.into_policy();
    let policy = net(&mut rng)?;
    let learned = prior.parameters().ok_or(gfn::Error::missing(
        "tuning",
        "a policy with parameters",
        "train a policy first",
    ))?;
    Checkpoint::new(learned, 0, Default::default())?.restore(policy.parameters())?;
    let policy = WithPrior { policy: GraphPolicy(policy), prior };
    let mut tuned = Trainer::new(env, reward, policy, RelativeTrajectoryBalance::new(1.0)?, config, rng)?;
    Fit::new(STEPS).run(&mut tuned)?;

    let mut table = Table::new(["from the data", "tuned to hetero atoms"]);
    let after = Sampler::new(tuned.env(), tuned.policy()).forward(10, &mut tuned.evaluation_rng())?;
    for (one, other) in before.terminal_states().graphs().iter().zip(after.terminal_states().graphs()) {
        table.push([library.molecule(one)?.smiles().into(), library.molecule(other)?.smiles().into()]);
    }
    println!("{table}");
    Ok(())
}
