//! Tests of the environment that builds molecules: the checks that every environment must pass, SMILES of
//! sampled molecules, and an enumeration of all small molecules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::enumeration::enumerate;
use gfn::contract::{Budget, check_graph_env};
use gfn::env::{EnumerableEnv, Env, Reward, Rows, StateGraph};
use gfn::graph::{CanonicalKey, GraphStates};
use gfn::metrics::ExactPolicy;
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn::{Result, Rng};
use gfn_extras::condition::{Condition, ConditionedReward, Conditioning, Encoding, Temperature};
use gfn_molecules::{
    AtomSpec, BondOrder, Element, Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward, ValenceTable,
};
use tch::Tensor;

fn carbon_nitrogen_oxygen(max_atoms: usize) -> MoleculeConfig {
    let elements = vec![Element::C, Element::N, Element::O];
    MoleculeConfig { elements, charges: Vec::new(), ..MoleculeConfig::new(max_atoms) }
}

fn configs() -> Vec<MoleculeConfig> {
    let base = MoleculeConfig::new(7);
    vec![
        base.clone(),
        carbon_nitrogen_oxygen(6),
        MoleculeConfig { max_rings: Some(1), max_ring_size: Some(4), ..base.clone() },
        MoleculeConfig {
            max_ring_size: Some(4),
            elements: vec![Element::C],
            charges: Vec::new(),
            ..MoleculeConfig::new(9)
        },
        MoleculeConfig {
            extra_valences: 2,
            elements: vec![Element::S, Element::P, Element::O],
            charges: vec![(Element::S, 1), (Element::O, -1)],
            ..base.clone()
        },
        MoleculeConfig { max_order: BondOrder::Single, max_rings: Some(0), ..base.clone() },
        MoleculeConfig {
            max_order: BondOrder::Double,
            charges: vec![(Element::N, 1), (Element::N, -1), (Element::O, 1), (Element::C, -1)],
            ..base
        },
        MoleculeConfig::new(1),
    ]
}

#[test]
fn environments_keep_their_contract() {
    for config in configs() {
        let env = MoleculeEnv::new(config).unwrap().into_env();
        check_graph_env(&env, Budget::thorough().with_walks(20), &mut Rng::seeded(1)).unwrap();
    }
}

#[test]
fn every_roll_out_gives_a_molecule() {
    let mut configs = configs();
    configs.push(MoleculeConfig::new(16));
    for config in configs {
        let molecules = MoleculeEnv::new(config).unwrap();
        let env = molecules.env().clone();
        let samples = Sampler::new(&env, &UniformPolicy).forward(200, &mut Rng::seeded(2)).unwrap();
        for graph in samples.terminal_states().graphs() {
            let molecule = molecules.codec().molecule(graph).unwrap();
            assert_eq!(molecule.atoms().len(), graph.n_nodes());
            for text in [molecule.smiles(), molecule.kekule_smiles()] {
                let again = Molecule::from_smiles(&text).unwrap();
                assert_eq!(again.key(), molecule.key(), "{text}");
            }
            assert_eq!(molecules.codec().graph(&molecule).unwrap(), *graph, "{}", molecule.smiles());
        }
    }
}

/// Returns the keys of all molecules that the environment reaches, and the number of states that aren't
/// empty.
fn reached(env: &MoleculeEnv) -> (BTreeSet<CanonicalKey>, usize) {
    let graph = StateGraph::build(env.env(), 1 << 17).unwrap();
    let states: &GraphStates = graph.states();
    let molecules = states
        .graphs()
        .iter()
        .filter(|graph| graph.n_nodes() > 0)
        .map(|graph| env.codec().molecule(graph).unwrap());
    (molecules.map(|molecule| molecule.key()).collect(), states.len() - 1)
}

/// Returns all sequences of `n` elements of `values`.
fn product<T: Copy>(values: &[T], n: usize) -> Vec<Vec<T>> {
    (0..n).fold(vec![Vec::new()], |all, _| {
        all.iter()
            .flat_map(|head| values.iter().map(move |&value| [head.as_slice(), &[value]].concat()))
            .collect()
    })
}

/// Tests that the environment reaches every small molecule and nothing else. For three atoms the expected
/// list comes from trying all graphs; for four atoms the list is RDKit's
/// (`scripts/molecules/enumerate_molecules.py`).
#[test]
fn all_small_molecules_are_reached_and_no_others() {
    let mut tried = BTreeSet::new();
    let table = ValenceTable::default();
    let orders = [None, Some(BondOrder::Single), Some(BondOrder::Double), Some(BondOrder::Triple)];
    for n in 1..=3 {
        let pairs: Vec<_> = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).collect();
        for elements in product(&[Element::C, Element::N, Element::O], n) {
            let atoms: Vec<_> = elements.into_iter().map(AtomSpec::from_element).collect();
            for orders in product(&orders, pairs.len()) {
                let bonds: Vec<_> =
                    pairs.iter().zip(orders).filter_map(|(&(a, b), order)| Some((a, b, order?))).collect();
                if let Ok(molecule) = Molecule::new(&table, &atoms, &bonds) {
                    tried.insert(molecule.key());
                }
            }
        }
    }
    assert_eq!(reached(&MoleculeEnv::new(carbon_nitrogen_oxygen(3)).unwrap()).0, tried);

    let listed = include_str!("golden/molecules_cno_4.smi");
    let listed: Vec<_> = listed.lines().map(|line| Molecule::from_smiles(line).unwrap()).collect();
    let keys: BTreeSet<_> = listed.iter().map(Molecule::key).collect();
    assert_eq!(keys.len(), listed.len());
    let (reached, states) = reached(&MoleculeEnv::new(carbon_nitrogen_oxygen(4)).unwrap());
    assert_eq!(reached, keys);
    // The states of a molecule are its Kekule forms.
    assert_eq!(states, listed.iter().map(|molecule| molecule.n_kekule_forms().unwrap()).sum::<usize>());
}

/// Returns the size of the largest ring in a smallest set of rings, by Horton (1987). A candidate is a ring
/// that consists of an edge and the shortest paths from a node to the ends of this edge. Candidates enter the
/// set in the order of their lengths, unless they are sums of earlier candidates (symmetric differences of
/// their edges).
fn largest_ring(molecule: &Molecule) -> usize {
    let n = molecule.atoms().len();
    // This closure returns for each node the length of a shortest path from `start` to the node, and the
    // bonds of this path as bits.
    let paths = |start: usize| {
        let mut found = vec![None; n];
        found[start] = Some((0, 0u32));
        let mut open = std::collections::VecDeque::from([start]);
        while let Some(a) = open.pop_front() {
            let (length, path) = found[a].unwrap();
            for (k, bond) in
                molecule.bonds().iter().enumerate().filter(|(_, bond)| bond.a == a || bond.b == a)
            {
                let b = bond.other_end(a);
                if found[b].is_none() {
                    found[b] = Some((length + 1, path | 1 << k));
                    open.push_back(b);
                }
            }
        }
        found.into_iter().map(Option::unwrap).collect::<Vec<(usize, u32)>>()
    };
    let mut candidates = Vec::new();
    for paths in (0..n).map(paths) {
        for (k, bond) in molecule.bonds().iter().enumerate() {
            let ((left, one), (right, other)) = (paths[bond.a], paths[bond.b]);
            if one & other == 0 && (one | other) >> k & 1 == 0 {
                candidates.push((left + right + 1, one | other | 1 << k));
            }
        }
    }
    candidates.sort_unstable();
    let (mut basis, mut largest): (Vec<u32>, usize) = (Vec::new(), 0);
    for (size, ring) in candidates {
        // The smaller of the numbers `rest` and `rest ^ row` has a 0 at the leading bit of `row`. Taking the
        // smaller number for one row after the other is a Gaussian elimination.
        let rest = basis.iter().fold(ring, |rest, row| rest.min(rest ^ row));
        if rest != 0 {
            basis.push(rest);
            basis.sort_unstable_by(|a, b| b.cmp(a));
            largest = size;
        }
    }
    assert_eq!(basis.len(), molecule.n_rings());
    largest
}

/// Tests that a limit on ring sizes allows fused small rings, but no larger rings. The environment must reach
/// exactly the molecules that a filter of all molecules keeps.
#[test]
fn ring_limits_are_those_of_a_filter() {
    let carbons = |max_atoms, max_rings, max_ring_size| {
        let config = MoleculeConfig {
            max_rings,
            max_ring_size,
            elements: vec![Element::C],
            max_order: BondOrder::Single,
            ..carbon_nitrogen_oxygen(max_atoms)
        };
        let env = MoleculeEnv::new(config).unwrap();
        let graph = StateGraph::build(env.env(), 1 << 17).unwrap();
        let molecules = graph.states().graphs().iter().filter(|graph| graph.n_nodes() > 0);
        molecules.map(|graph| env.codec().molecule(graph).unwrap()).collect::<Vec<_>>()
    };
    // The expected numbers are those of connected graphs of 1 to 5 nodes (OEIS A001349). No node has more
    // than 4 edges, so each graph is a molecule of carbon.
    assert_eq!(carbons(5, None, None).len(), 1 + 1 + 2 + 6 + 21);
    // Without rings the molecules are alkanes. The expected numbers are those of trees of 1 to 6 nodes with
    // degrees of at most 4.
    assert_eq!(carbons(6, Some(0), None).len(), 1 + 1 + 1 + 2 + 3 + 5);
    let all = carbons(6, None, None);
    let sizes: Vec<usize> = all.iter().map(largest_ring).collect();
    for size in 3..=6 {
        for rings in [Some(1), Some(2), None] {
            let fits = |&(molecule, &largest): &(&Molecule, &usize)| {
                largest <= size && rings.is_none_or(|most| molecule.n_rings() <= most)
            };
            let left: BTreeSet<_> =
                all.iter().zip(&sizes).filter(fits).map(|(molecule, _)| molecule.key()).collect();
            let reached = carbons(6, rings, Some(size));
            assert_eq!(reached.len(), left.len(), "{rings:?} rings of {size}");
            assert_eq!(
                reached.iter().map(Molecule::key).collect::<BTreeSet<_>>(),
                left,
                "{rings:?} rings of {size}"
            );
        }
    }
    assert!((3..6).all(|size| sizes.contains(&size)) && sizes.iter().filter(|size| **size == 6).count() == 1);
}

/// Tests that the policy of the exact flows samples each molecule in proportion to its score, and that Z is
/// the sum over molecules instead of states.
#[test]
fn the_target_is_over_molecules() {
    let molecules = MoleculeEnv::new(carbon_nitrogen_oxygen(3)).unwrap();
    let env = molecules.env().clone();
    let score = |molecule: &Molecule| 0.1 + molecule.heteroatom_share();
    let (_, _, log_z) = enumerate(&env, &MoleculeReward::new(molecules.codec(), score)).unwrap();
    let listed =
        include_str!("golden/molecules_cno_4.smi").lines().map(|line| Molecule::from_smiles(line).unwrap());
    let sum: f64 =
        listed.filter(|molecule| molecule.atoms().len() <= 3).map(|molecule| score(&molecule)).sum();
    assert!((log_z - sum.ln()).abs() < 1e-9);

    // By Burnside's lemma there are 13 molecules, with 16 Kekule forms in all, that are rings of six atoms
    // with alternating bonds and atoms of two elements.
    let config = MoleculeConfig {
        elements: vec![Element::N, Element::P],
        max_order: BondOrder::Double,
        max_rings: Some(1),
        ..carbon_nitrogen_oxygen(6)
    };
    let molecules = MoleculeEnv::new(config).unwrap();
    let env = molecules.env().clone();
    let graph = StateGraph::build(&env, 1 << 17).unwrap();
    let mut forms: BTreeMap<CanonicalKey, (usize, Molecule)> = BTreeMap::new();
    for state in graph.states().graphs().iter().filter(|state| state.n_nodes() > 0) {
        let molecule = molecules.codec().molecule(state).unwrap();
        forms.entry(molecule.key()).or_insert((0, molecule)).0 += 1;
    }
    let several = forms.values().filter(|(forms, _)| *forms > 1);
    assert_eq!(several.map(|(forms, _)| forms - 1).sum::<usize>(), 16 - 13);
    // For any reward function each molecule must have its share in the target, and the policy of the exact
    // flows must sample molecules with the same shares.
    let sum =
        |score: fn(&Molecule) -> f64| -> f64 { forms.values().map(|(_, molecule)| score(molecule)).sum() };
    let alike =
        |states: &GraphStates, _: Option<&Tensor>| -> Result<Vec<f64>> { Ok(vec![0.0; states.len()]) };
    let rewards: [(Box<dyn Reward<GraphStates>>, f64); 2] = [
        (Box::new(MoleculeReward::new(molecules.codec(), score)), sum(score)),
        (Box::new(alike), forms.len() as f64),
    ];
    let objects = env.objects(graph.states()).unwrap();
    assert_eq!(objects.first.len(), forms.len() + 1, "the empty one, too");
    for (reward, expected) in rewards {
        let target = graph.target_distribution(reward.as_ref(), None).unwrap();
        assert!((target.log_z.exp() / expected - 1.0).abs() < 1e-9);
        let exact = ExactPolicy::new(&graph, &env, &UniformPolicy, reward.as_ref()).unwrap();
        let learned = graph.terminating_distribution(&env, &exact, None).unwrap().probs;
        let mut shares = vec![0.0; objects.first.len()];
        for (&object, p) in objects.group_of.iter().zip(&learned) {
            shares[object] += p;
        }
        for (share, &first) in shares.iter().zip(&objects.first).skip(1) {
            let log_r = reward.log_reward(&graph.states().select(&[first]), None).unwrap()[0];
            assert!((share / (log_r - target.log_z).exp() - 1.0).abs() < 1e-6);
        }
    }
}

/// Tests that a temperature acts on the reward of the molecule, and not on the share of this reward that each
/// Kekule form gets.
#[test]
fn forms_share_the_reward_at_any_temperature() {
    let molecules = MoleculeEnv::new(MoleculeConfig::new(12)).unwrap();
    let env = molecules.env().clone();
    let score = |molecule: &Molecule| molecule.atoms().len() as f64;
    let law = Temperature::Uniform { least: 0.5, most: 4.0 };
    let conditioning =
        Conditioning::new(1).unwrap().temperature(law, Encoding::Thermometer { bins: 8 }).unwrap();
    let reward = Arc::new(MoleculeReward::new(molecules.codec(), score));
    let reward = ConditionedReward::new(conditioning.clone(), vec![reward]).unwrap();
    for beta in [0.5, 1.0, 3.0] {
        // The three molecules have 1, 2 and 3 Kekule forms.
        for (smiles, n_forms) in [("CCc1ccccc1", 1), ("Cc1ccccc1C", 2), ("Cc1ccc2ccccc2c1C", 3)] {
            let molecule = Molecule::from_smiles(smiles).unwrap();
            let one = GraphStates::from(vec![molecules.codec().graph(&molecule).unwrap()]);
            let forms = env.symmetry().forms(&one).unwrap().map_or(one, |forms| forms.states);
            assert_eq!(forms.len(), n_forms);
            let told = vec![Condition { beta, preferences: vec![1.0], focus: None }; n_forms];
            let logs = reward.log_reward(&forms, Some(&conditioning.encode(&told).unwrap())).unwrap();
            let shares = env.symmetry().log_multiplicity(&forms).unwrap().unwrap_or(vec![0.0; n_forms]);
            let sum: f64 = logs.iter().zip(shares).map(|(log, share)| (log - share).exp()).sum();
            assert!((sum / score(&molecule).powf(beta) - 1.0).abs() < 1e-9);
        }
    }
}
