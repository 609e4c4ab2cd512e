//! Tests of fragments that are cut from data, and of training on given molecules: vocabularies, maximum
//! likelihood, and fine-tuning of a prior.

use std::collections::BTreeMap;

use gfn::Rng;
use gfn::env::{Reward, Rows, StateGraph};
use gfn::graph::{GraphEnv, GraphState, GraphStates};
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig, GraphNetwork};
use gfn::objective::{MaximumLikelihood, RelativeTrajectoryBalance};
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{GraphPolicy, UniformPolicy, WithPrior};
use gfn::replay::{DataSource, Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::Sampler;
use gfn::train::{Checkpoint, ReplayPath, Trainer, TrainerConfig};
use gfn_molecules::fragments::{FragmentLibrary, FragmentReward, Fragments, Vocabulary};
use gfn_molecules::{Element, Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward};
use serde_json::Value;

fn read(smiles: &str) -> Molecule {
    Molecule::from_smiles(smiles).unwrap()
}

#[test]
fn molecules_are_trees_of_the_pieces_that_they_fall_into() {
    let golden: Value = serde_json::from_str(include_str!("golden/molecules.json")).unwrap();
    let texts = golden["cases"].as_array().unwrap().iter().filter_map(|case| case["smiles"].as_str());
    let molecules: Vec<Molecule> = texts.filter_map(|text| Molecule::from_smiles(text).ok()).collect();
    let vocabulary: Vocabulary = molecules.iter().collect();
    let library = vocabulary.library(usize::MAX).unwrap();
    let some = vocabulary.library(10).unwrap();
    let is_cut = |molecule: &Molecule| {
        let in_ring = |a: usize| molecule.neighbours(a).any(|(_, bond)| bond.in_ring);
        molecule
            .bonds()
            .iter()
            .any(|bond| !bond.in_ring && bond.order.value() == 1 && (in_ring(bond.a) || in_ring(bond.b)))
    };
    let mut cut = 0;
    let mut by_some = 0;
    for molecule in molecules.iter().filter(|molecule| is_cut(molecule)) {
        let trees = library.trees(molecule, 100).unwrap();
        assert!(!trees.is_empty(), "{}", molecule.smiles());
        cut += 1;
        by_some += usize::from(!some.trees(molecule, 1).unwrap().is_empty());
    }
    println!(
        "{} pieces; {cut} of {} molecules are cut, ten fragments make {by_some}",
        library.fragments().len(),
        molecules.len()
    );
    assert!(cut > 40 && by_some < cut);
    let counts: Vec<usize> = vocabulary.fragments().iter().map(|counted| counted.count).collect();
    assert!(counts.is_sorted_by(|one, other| one >= other) && counts[0] > 5);
    assert_eq!(FragmentLibrary::parse(&library.to_string()).unwrap(), library);
    // The vocabulary must not depend on the order of the molecules and of their atoms.
    let others: Vec<Molecule> = molecules.iter().rev().map(|molecule| read(&molecule.smiles())).collect();
    assert_eq!(others.iter().collect::<Vocabulary>().fragments(), vocabulary.fragments());
}

#[test]
fn pieces_are_counted_with_all_places_where_they_were_cut() {
    let molecules =
        ["Cc1ccccn1", "Cc1cccnc1CC(=O)O", "O=C1CCCN1CC1CC1", "CCO", "C1CC1C1CC1", "O(c1ccccn1)c1ccccn1"]
            .map(read);
    let vocabulary: Vocabulary = molecules.iter().collect();
    let found: BTreeMap<String, (usize, usize)> = vocabulary
        .fragments()
        .iter()
        .map(|counted| {
            let stems = counted.fragment.stems().iter().map(|stem| usize::from(stem.room)).sum();
            (counted.fragment.molecule().smiles(), (counted.count, stems))
        })
        .collect();
    let of = |smiles: &str| found.get(&read(smiles).smiles()).copied();
    // In the molecules, pyridine is bonded to other fragments at the atom next to its nitrogen and at the
    // atom after that. Each of the two atoms has a mirror image on the other side of the ring, so pyridine
    // must have 4 stems (places at which other fragments can be attached).
    assert_eq!(of("c1ccncc1"), Some((4, 4)));
    assert_eq!((of("C"), of("CC(=O)O"), of("O")), (Some((3, 2)), Some((1, 1)), Some((1, 2))));
    assert_eq!((of("O=C1CCCN1"), of("C1CC1")), (Some((1, 1)), Some((3, 3))));
    assert_eq!((found.len(), of("CCO")), (6, None));

    let path = std::env::temp_dir().join(format!("gfn-vocabulary-{}.smi", std::process::id()));
    std::fs::write(&path, "smiles,name\nCc1ccccn1,a\n[Na+].[13CH3]c1ccccn1\n\nCC[Pt]\n").unwrap();
    let vocabulary = Vocabulary::read(&path).unwrap();
    let library = FragmentLibrary::from_data(&path, 5).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((vocabulary.report().read, vocabulary.report().n_skipped()), (2, 1));
    assert_eq!(vocabulary.fragments().iter().map(|counted| counted.count).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(library, vocabulary.library(5).unwrap());
    assert!(
        Vocabulary::default().library(5).unwrap_err().to_string().contains("a library of fragments is 0")
    );
    assert!(Vocabulary::read(&path).is_err());
}

/// The results of learning from data. `before` and `after` are the exact log-likelihoods per object before
/// and after training. `entropy` is the entropy of the data, and `tv_to_data` is the total variation between
/// the trained policy and the data. `tv` and `tv_untuned` are the total variations of the fine-tuned policy
/// and of the prior to the product of prior and reward.
struct Learned {
    before: f64,
    after: f64,
    entropy: f64,
    tv_to_data: f64,
    tv: f64,
    tv_untuned: f64,
}

/// Trains a policy by maximum likelihood on the states `data`. Then fine-tunes the policy by relative
/// trajectory balance, with the learned policy as the prior.
fn learned<R: Reward<GraphStates> + 'static>(
    make: impl Fn() -> GraphEnv,
    reward: impl Fn() -> R,
    data: Vec<GraphState>,
) -> Learned {
    tch::set_num_threads(1);
    let env = make();
    let mut rng = Rng::seeded(0);
    let states = GraphStates::from(data);
    let space = StateGraph::build(&env, 10_000).unwrap();
    let shares = space.empirical(&env, &states).unwrap();
    let config = GraphNetConfig {
        conv: ConvKind::Gine,
        layers: 2,
        embedding: 32,
        pair_walks: Some(2),
        backward: BackwardPolicy::Uniform,
        ..GraphNetConfig::default()
    };
    let net = |rng: &mut Rng| {
        GraphNet::new(&make(), config.clone(), tch::Device::Cpu, tch::Kind::Float, rng).unwrap()
    };
    let policy = GraphPolicy(net(&mut rng));
    let likelihood = |probs: &[f64]| {
        shares.iter().zip(probs).filter(|(share, _)| **share > 0.0).map(|(share, p)| share * p.ln()).sum()
    };
    let before = likelihood(&space.terminating_distribution(&env, &policy, None).unwrap().probs);

    let walks = Sampler::new(&env, &UniformPolicy).backward(&states, &mut rng).unwrap().walks(&env).unwrap();
    let capacity = states.graphs().len();
    let mut buffer =
        ReplayBuffer::new(ReplayConfig { capacity, eviction: Eviction::Fifo, draw: Draw::Uniform }).unwrap();
    buffer.add(&env, &walks, &vec![0.0; capacity]).unwrap();
    let steps = 200;
    let training = TrainerConfig {
        batch: 64,
        adam: AdamConfig { lr: 5e-3, log_z_lr: 1e-1, ..AdamConfig::default() },
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps },
        ..TrainerConfig::default()
    };
    let offline = TrainerConfig {
        source: DataSource::new(0.0, 0.0, 1.0).unwrap(),
        replay_path: ReplayPath::UniformBackward,
        ..training.clone()
    };
    let mut trainer = Trainer::new(env, reward(), policy, MaximumLikelihood, offline, rng.clone())
        .unwrap()
        .with_data(buffer);
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    let prior = space.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap().probs;

    // The prior stays fixed. The policy that is fine-tuned begins as a copy of the prior.
    let ends = space.ends();
    let log_r = gfn::env::log_rewards(&reward(), &space.states().select(&ends), None).unwrap();
    let mut target = vec![0.0; prior.len()];
    for (&end, log_r) in ends.iter().zip(log_r) {
        target[end] = prior[end] * log_r.exp();
    }
    let sum: f64 = target.iter().sum();
    for weight in &mut target {
        *weight /= sum;
    }
    let kept = Checkpoint::new(trainer.policy().parameters().unwrap(), 0, Value::Null).unwrap();
    let copy = |rng: &mut Rng| {
        let copy = net(rng);
        kept.restore(copy.parameters()).unwrap();
        GraphPolicy(copy)
    };
    let policy = WithPrior { policy: copy(&mut rng), prior: copy(&mut rng) };
    let objective = RelativeTrajectoryBalance::new(1.0).unwrap();
    let mut tuned = Trainer::new(make(), reward(), policy, objective, training, rng).unwrap();
    for _ in 0..steps {
        tuned.step().unwrap();
    }
    let tuned = space.terminating_distribution(tuned.env(), tuned.policy(), None).unwrap().probs;
    let tv = |one: &[f64], other: &[f64]| Distances::between(one, other).unwrap().tv;
    Learned {
        before,
        after: likelihood(&prior),
        entropy: likelihood(&shares),
        tv_to_data: tv(&prior, &shares),
        tv: tv(&tuned, &target),
        tv_untuned: tv(&prior, &target),
    }
}

impl Learned {
    /// Checks that the policy's exact distribution is near the data after learning, and near the target after
    /// fine-tuning.
    fn check(&self) {
        let Self { before, after, entropy, tv_to_data, tv, tv_untuned } = self;
        println!(
            "log likelihood {before:.3} to {after:.3} of at most {entropy:.3}, TV to the data \
             {tv_to_data:.4}; then TV {tv:.4} to prior times reward, which the prior is {tv_untuned:.4} away \
             from"
        );
        assert!(after - before > 1.0 && entropy - after < 0.05 && *tv_to_data < 0.05);
        assert!(*tv < 0.05 && *tv_untuned > 0.15);
    }
}

/// Tests learning with fragments. A molecule may have several trees of fragments; all of them are training
/// data, with equal shares.
#[test]
fn fragments_learn_from_molecules_and_are_tuned_to_a_reward() {
    let library = FragmentLibrary::parse("c1ccccc1 0,1,2,3,4,5\nN 0,0\nC 0,0\nCC 0,1\nO 0,0").unwrap();
    let fragments = Fragments::new(&library, 3).unwrap();
    let make = || fragments.env().clone();
    let mut data = Vec::new();
    for text in [
        "CCCN",
        "CCCN",
        "Cc1ccc(C)cc1",
        "Cc1ccccc1N",
        "NCN",
        "OCc1ccccc1",
        "CCO",
        "NC",
        "c1ccccc1-c1ccccc1",
        "CNC",
    ] {
        let trees = library.trees(&read(text), 10).unwrap();
        let within: Vec<GraphState> =
            trees.into_iter().filter_map(|tree| fragments.state(&tree).ok()).collect();
        assert!(!within.is_empty(), "{text}");
        for k in 0..12 {
            data.push(within[k % within.len()].clone());
        }
    }
    let reward =
        || FragmentReward::new(&library, |molecule: &Molecule| (4.0 * molecule.heteroatom_share()).exp());
    learned(make, reward, data).check();
}

/// Checks that a policy that builds molecules atom by atom learns from a list of molecules, each given as one
/// of its Kekule forms.
#[test]
fn atoms_learn_from_molecules_and_are_tuned_to_a_reward() {
    let elements = vec![Element::C, Element::N, Element::O];
    let config = MoleculeConfig { elements, charges: Vec::new(), ..MoleculeConfig::new(3) };
    let molecules = MoleculeEnv::new(config).unwrap();
    let make = || molecules.env().clone();
    let codec = molecules.codec().clone();
    let texts = ["CCO", "CCO", "C#N", "C1CO1", "NC=O", "CC=O", "CNC", "N=C=O", "CC#C", "OCO", "NN", "C"];
    let data: Vec<GraphState> = texts.iter().map(|text| codec.graph(&read(text)).unwrap()).collect();
    let data: Vec<GraphState> = data.iter().cycle().take(10 * data.len()).cloned().collect();
    let reward =
        || MoleculeReward::new(&codec, |molecule: &Molecule| (3.0 * molecule.heteroatom_share()).exp());
    learned(make, reward, data).check();
}
