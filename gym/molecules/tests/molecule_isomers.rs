//! Tests of the environment that builds stereoisomers: the checks that every environment must pass, each
//! isomer as one object, and a target over isomers.

use std::collections::{BTreeMap, BTreeSet};

use gfn::contract::{Budget, check_graph_env};
use gfn::env::StateGraph;
use gfn::graph::{CanonicalKey, GraphEnv, GraphStates, canonical_key};
use gfn::metrics::ExactPolicy;
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn::{Result, Rng};
use gfn_molecules::{Element, Molecule, MoleculeConfig, MoleculeEnv};
use tch::Tensor;

fn with_stereo(elements: &[Element], max_atoms: usize) -> MoleculeConfig {
    let elements = elements.to_vec();
    let charges = Vec::new();
    MoleculeConfig { elements, charges, stereo: true, ..MoleculeConfig::new(max_atoms) }
}

#[test]
fn environments_keep_their_contract() {
    let charged = MoleculeConfig { stereo: true, ..MoleculeConfig::new(7) };
    let hyper = MoleculeConfig {
        extra_valences: 2,
        ..with_stereo(&[Element::S, Element::P, Element::O, Element::C], 6)
    };
    for config in [with_stereo(&[Element::C, Element::F], 7), charged, hyper] {
        let env = MoleculeEnv::new(config).unwrap().into_env();
        check_graph_env(&env, Budget::thorough().with_walks(12), &mut Rng::seeded(1)).unwrap();
    }
}

#[test]
fn every_roll_out_gives_one_stereoisomer() {
    let config = MoleculeConfig { stereo: true, max_ring_size: Some(7), ..MoleculeConfig::new(12) };
    let molecules = MoleculeEnv::new(config).unwrap();
    let env = molecules.env().clone();
    let samples = Sampler::new(&env, &UniformPolicy).forward(300, &mut Rng::seeded(2)).unwrap();
    let mut marked = 0;
    for graph in samples.terminal_states().graphs() {
        let molecule = molecules.codec().molecule(graph).unwrap();
        let text = molecule.smiles();
        assert_eq!(molecule.n_stereoisomers(), Some(1), "{text}");
        let again = Molecule::from_smiles(&text).unwrap();
        assert_eq!(again.key(), molecule.key(), "{text}");
        assert_eq!(
            canonical_key(&molecules.codec().graph(&molecule).unwrap()),
            canonical_key(graph),
            "{text}"
        );
        marked += usize::from(!molecule.marks().is_empty());
    }
    assert!(marked > 100, "{marked} of 300 have marks");
}

/// Returns the molecule of each state that can be finished.
fn molecules(env: &MoleculeEnv, states: &GraphStates) -> Vec<Option<Molecule>> {
    states
        .graphs()
        .iter()
        .map(|graph| env.env().rules().can_exit(graph).then(|| env.codec().molecule(graph).unwrap()))
        .collect()
}

/// Returns the total variation between the target over molecules and the policy of the exact flows with
/// uniform P_B. The reward distinguishes isomers.
fn exact_distance(env: &MoleculeEnv, graph: &StateGraph<GraphEnv>) -> f64 {
    let score = |molecule: &Molecule| {
        let text = molecule.smiles();
        0.5 + (text.matches("@@").count() + text.len()) as f64
    };
    let codec = env.codec().clone();
    let reward = move |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> {
        states.graphs().iter().map(|graph| Ok(score(&codec.molecule(graph)?).ln())).collect()
    };
    let finished = molecules(env, graph.states());
    let mut seen = BTreeSet::new();
    let sum: f64 = finished.iter().flatten().filter(|molecule| seen.insert(molecule.key())).map(score).sum();
    let target = graph.target_distribution(&reward, None).unwrap();
    assert!((target.log_z.exp() / sum - 1.0).abs() < 1e-9);
    let exact = ExactPolicy::new(graph, env.env(), &UniformPolicy, &reward).unwrap();
    let learned = graph.terminating_distribution(env.env(), &exact, None).unwrap().probs;
    let mut shares: BTreeMap<CanonicalKey, f64> = BTreeMap::new();
    for (molecule, p) in finished.iter().zip(learned) {
        let Some(molecule) = molecule else {
            assert_eq!(p, 0.0);
            continue;
        };
        *shares.entry(molecule.key()).or_insert(-score(molecule) / sum) += p;
    }
    shares.values().map(|off| off.abs()).sum::<f64>() / 2.0
}

/// Tests that the environment reaches exactly the stereoisomers of the molecules that it reaches without
/// stereochemistry. The policy of the exact flows must sample from the target, with stereochemistry and
/// without.
#[test]
fn the_target_is_over_stereoisomers() {
    use Element::{C, F, N, O};
    // The test takes small sets of elements. The test also passes for C, N and O with up to 5 heavy atoms
    // (more than 6,000 isomers), but then takes a minute.
    for (elements, max_atoms, n_isomers) in [(&[C, N, O][..], 4, 649), (&[C, F][..], 5, 437)] {
        let flat =
            MoleculeEnv::new(MoleculeConfig { stereo: false, ..with_stereo(elements, max_atoms) }).unwrap();
        let all = StateGraph::build(flat.env(), 1 << 17).unwrap();
        let mut expected: BTreeSet<CanonicalKey> = BTreeSet::new();
        for molecule in molecules(&flat, all.states()).iter().flatten() {
            assert!(molecule.marks().is_empty());
            let isomers = molecule.stereoisomers().unwrap();
            assert_eq!(molecule.n_stereoisomers(), Some(isomers.len() as u64));
            expected.extend(isomers.iter().map(Molecule::key));
        }
        let env = MoleculeEnv::new(with_stereo(elements, max_atoms)).unwrap();
        let graph = StateGraph::build(env.env(), 1 << 17).unwrap();
        let reached: BTreeSet<_> =
            molecules(&env, graph.states()).iter().flatten().map(Molecule::key).collect();
        assert_eq!(reached, expected);
        assert_eq!(reached.len(), n_isomers);
        for (env, graph) in [(&flat, &all), (&env, &graph)] {
            let tv = exact_distance(env, graph);
            assert!(tv < 1e-6, "{tv}");
        }
    }
}
