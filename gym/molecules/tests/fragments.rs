//! Tests of junction trees of fragments: the checks that every environment must pass, and a comparison with
//! trees that are enumerated naively and compared atom by atom.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::enumeration::enumerate;
use gfn::Rng;
use gfn::contract::{Budget, check_graph_env};
use gfn::env::{Direction, DiscreteEnv, EnumerableEnv, Env, Rows, Slots, StateGraph};
use gfn::graph::{Attributes, Edge, GraphEnv, GraphKind, GraphState, Node, log_automorphisms};
use gfn::metrics::{Distances, ExactPolicy};
use gfn::nn::{ConvKind, GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::optim::AdamConfig;
use gfn::policy::{GraphPolicy, UniformPolicy};
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::{Trainer, TrainerConfig};
use gfn_molecules::fragments::{Fragment, FragmentLibrary, FragmentReward, Fragments};
use gfn_molecules::{Element, Molecule};
use petgraph::algo::is_isomorphic_matching;
use petgraph::graph::UnGraph;

/// A library with a symmetric ring, a stem (attachment point) that can take three fragments, a fragment with
/// two equivalent stems, and a fragment with two different stems. In its last fragment, the fluorines have a
/// symmetry that doesn't involve stems.
const SMALL: &str = "c1ccccc1 0,1,2,3,4,5\nN 0,0,0\nCC 0,1\nO=CN 1,2\nC(F)(F)F 0\n";

fn library(text: &str) -> FragmentLibrary {
    FragmentLibrary::parse(text).unwrap()
}

fn libraries() -> Vec<(FragmentLibrary, usize)> {
    vec![
        (library(SMALL), 4),
        (library("c1ccccc1 0,1,2,3,4,5\nC 0"), 7),
        (library("C1CCCCC1 0,0,1,1,2,3\nN 0,0,0"), 4),
        // The first fragment of this library is a cube. The second fragment is a tetrahedron with four stems,
        // at each of which two fragments can be attached.
        (library("C12C3C4C1C5C2C3C45 0,1,2,3,4,5,6,7\nCC(C)(C)C 0,0,2,2,3,3,4,4"), 3),
        (FragmentLibrary::standard().unwrap(), 6),
        (library("C 0"), 1),
        (library("C 0,0\nO 0"), 5),
    ]
}

#[test]
fn environments_keep_their_contract() {
    for (library, max_fragments) in libraries() {
        for corrects in [true, false] {
            let env = Fragments::new(&library, max_fragments)
                .unwrap()
                .into_env()
                .with_symmetry_correction(corrects);
            // In an environment of a large library each state has thousands of moves. The check takes and
            // undoes each of them, so it gets fewer trajectories.
            let walks = if library.max_stems() * library.fragments().len() > 100 { 1 } else { 6 };
            check_graph_env(&env, Budget::thorough().with_walks(walks), &mut Rng::seeded(1)).unwrap();
        }
    }
}

/// The properties that distinguish atoms: the fragment, the element, the charge, the number of hydrogens in
/// the fragment, and the number of fragments that can be attached to the atom.
type Mark = (usize, Element, i8, u8, u8);

/// A piece of a tree, which is a fragment attached to an earlier piece: the index of the fragment in the
/// library, the index of the earlier piece, the stem (attachment point) on the earlier piece, and the stem of
/// the fragment itself.
type Piece = (usize, usize, usize, usize);

/// Returns the atoms and bonds of a tree as a graph. The edge weight of bonds between fragments differs from
/// that of all other bonds.
fn atoms(library: &FragmentLibrary, pieces: &[Piece]) -> UnGraph<Mark, u8> {
    let mut graph = UnGraph::default();
    let mut first = Vec::new();
    for &(fragment, on, stem, own) in pieces {
        let fragment_of = |k: usize| &library.fragments()[k];
        let molecule = fragment_of(fragment).molecule();
        let start = graph.node_count();
        for (a, atom) in molecule.atoms().iter().enumerate() {
            let room =
                fragment_of(fragment).stems().iter().find(|stem| stem.atom == a).map_or(0, |stem| stem.room);
            graph.add_node((fragment, atom.element, atom.charge, atom.hydrogens, room));
        }
        let node = |a: usize| petgraph::graph::NodeIndex::new(a);
        for bond in molecule.bonds() {
            let kind = if bond.aromatic { 4 } else { bond.order.value() };
            graph.add_edge(node(start + bond.a), node(start + bond.b), kind);
        }
        if !first.is_empty() {
            let other: usize = first[on];
            let there = fragment_of(pieces[on].0).stems()[stem].atom;
            let here = fragment_of(fragment).stems()[own].atom;
            graph.add_edge(node(other + there), node(start + here), 0);
        }
        first.push(start);
    }
    graph
}

fn same(one: &UnGraph<Mark, u8>, other: &UnGraph<Mark, u8>) -> bool {
    is_isomorphic_matching(one, other, |a, b| a == b, |a, b| a == b)
}

/// Returns the fragments of a tree as pieces, in an order in which each piece is attached to an earlier
/// piece.
fn pieces(state: &GraphState) -> Vec<Piece> {
    let fragment = |a: usize| usize::from(state.node(a as u32).unwrap().class);
    let mut order = vec![0];
    let mut out = vec![(fragment(0), 0, 0, 0)];
    let mut next = 0;
    while let Some(&a) = order.get(next) {
        for b in state.adjacency().neighbours(a) {
            if order.contains(&b) {
                continue;
            }
            let stems = state.edge(a as u32, b as u32).unwrap().attributes;
            out.push((fragment(b), next, usize::from(stems.get(0)) - 1, usize::from(stems.get(1)) - 1));
            order.push(b);
        }
        next += 1;
    }
    assert_eq!(out.len(), state.n_nodes());
    out
}

/// A tree found by naive enumeration.
struct Listed {
    pieces: Vec<Piece>,
    atoms: UnGraph<Mark, u8>,
    /// The probability that a trajectory of uniform moves passes through this tree.
    passed: f64,
    /// The probability that a trajectory of uniform moves ends in this tree.
    ended: f64,
}

/// Lists all trees by the number of their fragments. A larger tree arises from a smaller one by joining each
/// stem (attachment point) that can take another fragment to each stem of each fragment of the library. Trees
/// that are equal atom by atom count as one tree.
fn listed(library: &FragmentLibrary, max_fragments: usize) -> Vec<Vec<Listed>> {
    let fragments = library.fragments();
    let own: Vec<(usize, usize)> = (0..fragments.len())
        .flat_map(|fragment| (0..fragments[fragment].stems().len()).map(move |stem| (fragment, stem)))
        .collect();
    let start = 1.0 / fragments.len() as f64;
    let first = |k: usize| {
        let pieces = vec![(k, 0, 0, 0)];
        Listed { atoms: atoms(library, &pieces), pieces, passed: start, ended: 0.0 }
    };
    let mut levels: Vec<Vec<Listed>> = vec![(0..fragments.len()).map(first).collect()];
    for size in 1..=max_fragments {
        // To save time, trees are compared only with trees of the same fragments.
        let mut found: BTreeMap<Vec<usize>, Vec<Listed>> = BTreeMap::new();
        for tree in levels.last_mut().unwrap() {
            let mut room: Vec<Vec<u8>> = tree
                .pieces
                .iter()
                .map(|piece| fragments[piece.0].stems().iter().map(|stem| stem.room).collect())
                .collect();
            for (k, &(_, on, stem, own)) in tree.pieces.iter().enumerate().skip(1) {
                room[on][stem] -= 1;
                room[k][own] -= 1;
            }
            let free: Vec<(usize, usize)> = (0..room.len())
                .flat_map(|node| (0..room[node].len()).map(move |stem| (node, stem)))
                .filter(|&(node, stem)| size < max_fragments && room[node][stem] > 0)
                .collect();
            tree.ended = tree.passed / (free.len() * own.len() + 1) as f64;
            for &(on, stem) in &free {
                for &(fragment, own) in &own {
                    let pieces = [tree.pieces.as_slice(), &[(fragment, on, stem, own)]].concat();
                    let mut kinds: Vec<usize> = pieces.iter().map(|piece| piece.0).collect();
                    kinds.sort_unstable();
                    let graph = atoms(library, &pieces);
                    let group = found.entry(kinds).or_default();
                    match group.iter_mut().find(|other| same(&other.atoms, &graph)) {
                        Some(known) => known.passed += tree.ended,
                        None => group.push(Listed { atoms: graph, pieces, passed: tree.ended, ended: 0.0 }),
                    }
                }
            }
        }
        if size < max_fragments {
            levels.push(found.into_values().flatten().collect());
        }
    }
    levels
}

/// Computes the natural logarithm of the number of automorphisms of a tree's atoms, by the canonical search
/// on graphs.
fn log_automorphisms_of_atoms(library: &FragmentLibrary, pieces: &[Piece]) -> f64 {
    let graph = atoms(library, pieces);
    let nodes: Vec<Node> = graph
        .node_weights()
        .map(|&(fragment, element, charge, hydrogens, room)| Node {
            class: fragment as u16,
            attributes: Attributes::new(&[element.number(), charge as u8, hydrogens, room]).unwrap(),
        })
        .collect();
    let ends = |e: petgraph::graph::EdgeIndex| graph.edge_endpoints(e).unwrap();
    let edges: Vec<_> = graph
        .edge_indices()
        .map(|e| (ends(e).0.index() as u32, ends(e).1.index() as u32, Edge::from_class(u16::from(graph[e]))))
        .collect();
    log_automorphisms(&GraphState::from_parts(GraphKind::Undirected, &nodes, &edges).unwrap()).unwrap()
}

/// Compares the trees, their symmetries and the probabilities of uniform moves with those of a naive
/// enumeration by atoms.
#[test]
fn trees_are_those_that_differ_atom_by_atom() {
    let cases = [
        (SMALL, 3),
        ("c1ccccc1 0,1,2,3,4,5\nC 0", 4),
        ("C1CCCCC1 0,0,1,1,2,3\nO 0", 3),
        ("C12C3C4C1C5C2C3C45 0,1,2,3,4,5,6,7\nC 0", 3),
        ("C1CNCCN1 0,2,5\nO 0,0", 3),
    ];
    for (text, max_fragments) in cases {
        let library = library(text);
        let env = Fragments::new(&library, max_fragments).unwrap().into_env();
        let graph = StateGraph::build(&env, 1 << 17).unwrap();
        let listed = listed(&library, max_fragments);
        let uniform = graph.terminating_distribution(&env, &UniformPolicy, None).unwrap().probs;
        let n_of =
            |size: usize| graph.states().graphs().iter().filter(|state| state.n_nodes() == size).count();
        let expected: Vec<usize> = listed.iter().map(Vec::len).collect();
        println!("{text:?}: {expected:?}");
        assert_eq!((1..=max_fragments).map(n_of).collect::<Vec<_>>(), expected, "{text:?}");
        let alone: Vec<f64> = (0..library.fragments().len())
            .map(|k| log_automorphisms_of_atoms(&library, &[(k, 0, 0, 0)]))
            .collect();
        let mut met = BTreeSet::new();
        for (index, state) in graph.states().graphs().iter().enumerate().skip(1) {
            let pieces = pieces(state);
            let drawn = atoms(&library, &pieces);
            let level = &listed[pieces.len() - 1];
            let place = level.iter().position(|other| same(&other.atoms, &drawn)).unwrap();
            assert!(met.insert((pieces.len(), place)), "two states are one tree: {state:?}");
            assert!((uniform[index] - level[place].ended).abs() < 1e-12, "{state:?}");
            let own: f64 = pieces.iter().map(|piece| alone[piece.0]).sum();
            let expected = log_automorphisms_of_atoms(&library, &pieces) - own;
            assert!((env.log_automorphisms(state).unwrap() - expected).abs() < 1e-9, "{state:?}");
        }
        assert_eq!(met.len(), expected.iter().sum::<usize>());
    }
}

/// Tests that benzene has 1, 1, 3, 3, 3, 1, 1 methyl derivatives with 0 to 6 methyl groups (Polya), whatever
/// the order of attachments.
#[test]
fn benzene_has_thirteen_methyl_derivatives() {
    let library = library("c1ccccc1 0,1,2,3,4,5\nC 0");
    let env = Fragments::new(&library, 7).unwrap().into_env();
    let mut states = env.initial(&[0]);
    env.step(Direction::Forward, &mut states, &Slots(vec![0])).unwrap();
    let mut counts = vec![states.len()];
    for _ in 0..6 {
        let mut children = HashMap::new();
        for row in 0..states.len() {
            let one = states.select(&[row]);
            for slot in env.masks(Direction::Forward, &one).legal_slots(0) {
                let mut child = one.clone();
                let exit = env.step(Direction::Forward, &mut child, &Slots(vec![slot])).unwrap().exit[0];
                let benzenes = child.graphs()[0].nodes().filter(|node| node.class == 0).count();
                if !exit && benzenes == 1 {
                    children.insert(env.keys(&child).remove(0), child);
                }
            }
        }
        counts.push(children.len());
        let mut all = children.into_values();
        states = all.next().unwrap();
        for child in all {
            states.append(child);
        }
    }
    assert_eq!(counts, [1, 1, 3, 3, 3, 1, 1]);
}

fn reward(library: &FragmentLibrary) -> FragmentReward<impl Fn(&Molecule) -> f64 + Clone + use<>> {
    FragmentReward::new(library, |molecule: &Molecule| 0.1 + molecule.heteroatom_share())
}

/// Returns the distribution over all trees that is sampled if training doesn't correct for symmetry: each
/// tree's target probability divided by the number of its automorphisms, normalised.
fn biased(graph: &StateGraph<GraphEnv>, env: &GraphEnv, target: &[f64]) -> Vec<f64> {
    let symmetry = graph.states().graphs().iter().map(|state| env.log_automorphisms(state).unwrap().exp());
    let weights: Vec<f64> = target.iter().zip(symmetry).map(|(p, symmetry)| p / symmetry).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

#[test]
fn exact_flows_sample_the_target_and_without_the_correction_what_symmetry_predicts() {
    for (text, max_fragments) in [(SMALL, 3), ("c1ccccc1 0,1,2,3,4,5\nC 0", 4)] {
        let library = library(text);
        let reward = reward(&library);
        let env = Fragments::new(&library, max_fragments).unwrap().into_env();
        let (_, _, log_z) = enumerate(&env, &reward).unwrap();
        // The expected Z is the sum of the rewards of all trees of the naive enumeration.
        let molecules = listed(&library, max_fragments).into_iter().flatten().map(|tree| {
            let graph = tree.atoms;
            let heavy = graph.node_count() as f64;
            0.1 + graph.node_weights().filter(|mark| mark.1 != Element::C).count() as f64 / heavy
        });
        assert!((log_z - molecules.sum::<f64>().ln()).abs() < 1e-9);

        let off = Fragments::new(&library, max_fragments).unwrap().into_env().with_symmetry_correction(false);
        let graph = StateGraph::build(&off, 1 << 17).unwrap();
        let target = graph.target_distribution(&reward, None).unwrap();
        let exact = ExactPolicy::new(&graph, &off, &UniformPolicy, &reward).unwrap();
        let sampled = graph.terminating_distribution(&off, &exact, None).unwrap().probs;
        let predicted = biased(&graph, &env, &target.probs);
        assert!(Distances::between(&sampled, &predicted).unwrap().tv < 1e-9);
        let tv = Distances::between(&sampled, &target.probs).unwrap().tv;
        println!("{text:?}: TV without the correction {tv}");
        assert!(tv > 0.1, "{tv}");
    }
}

/// Trains a policy for a few seconds. Returns three distances: from the policy to the target, from the policy
/// to the distribution that is predicted for training without the correction for symmetry, and from the
/// target to this prediction.
fn trained(corrects: bool) -> (f64, f64, f64) {
    tch::set_num_threads(1);
    let library = library("c1ccccc1 0,1,2,3,4,5\nN 0,0,0\nC 0\n");
    let env = Fragments::new(&library, 3).unwrap().into_env().with_symmetry_correction(corrects);
    let reward = reward(&library);
    let graph = StateGraph::build(&env, 1 << 12).unwrap();
    let target = graph.target_distribution(&reward, None).unwrap();
    let predicted = biased(&graph, &env, &target.probs);
    let mut rng = Rng::seeded(0);
    let network =
        GraphNetConfig { conv: ConvKind::Gine, layers: 2, embedding: 32, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, network, tch::Device::Cpu, tch::Kind::Float, &mut rng).unwrap();
    let config = TrainerConfig {
        batch: 64,
        adam: AdamConfig { lr: 5e-3, log_z_lr: 1e-1, ..AdamConfig::default() },
        ..TrainerConfig::default()
    };
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap();
    for _ in 0..150 {
        trainer.step().unwrap();
    }
    let probs = graph.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap().probs;
    let tv = |other: &[f64]| Distances::between(&probs, other).unwrap().tv;
    (tv(&target.probs), tv(&predicted), Distances::between(&target.probs, &predicted).unwrap().tv)
}

#[test]
fn a_trained_policy_samples_trees_in_proportion_to_the_reward() {
    let (tv, to_biased, apart) = trained(true);
    println!("corrected: TV {tv} to the target, {to_biased} to the biased one, which is {apart} away");
    assert!(tv < 0.05 && to_biased > 0.1);
}

/// Tests training without the correction for symmetry, as a negative control: the policy must sample the
/// predicted distribution instead of the target.
#[test]
fn without_the_correction_it_samples_what_symmetry_predicts() {
    let (tv, to_biased, apart) = trained(false);
    println!("not corrected: TV {tv} to the target, {to_biased} to the biased one, which is {apart} away");
    assert!(to_biased < 0.05 && tv > 0.1 && (tv - apart).abs() < 0.05);
}

#[test]
fn every_roll_out_gives_a_molecule() {
    for (library, max_fragments) in libraries() {
        let env = Fragments::new(&library, max_fragments).unwrap().into_env();
        let samples = Sampler::new(&env, &UniformPolicy).forward(600, &mut Rng::seeded(2)).unwrap();
        for graph in samples.terminal_states().graphs() {
            let molecule = library.molecule(graph).unwrap();
            let fragments: Vec<&Fragment> =
                graph.nodes().map(|node| &library.fragments()[usize::from(node.class)]).collect();
            let heavy: usize = fragments.iter().map(|fragment| fragment.molecule().atoms().len()).sum();
            let hydrogens: usize = fragments.iter().map(|fragment| fragment.molecule().n_hydrogens()).sum();
            assert_eq!(molecule.atoms().len(), heavy);
            assert_eq!(molecule.n_hydrogens(), hydrogens - graph.n_edges());
            for text in [molecule.smiles(), molecule.kekule_smiles()] {
                assert_eq!(Molecule::from_smiles(&text).unwrap().key(), molecule.key(), "{text}");
            }
        }
    }
}

/// Tests that backward trajectories, replayed forward in the order in which fragments are added, lead to the
/// same trees.
#[test]
fn backward_walks_are_replayed() {
    for (library, max_fragments) in libraries() {
        let env = Fragments::new(&library, max_fragments).unwrap().into_env();
        let mut rng = Rng::seeded(3);
        let forward = Sampler::new(&env, &UniformPolicy).forward(300, &mut rng).unwrap();
        let ends = forward.terminal_states();
        let backward = Sampler::new(&env, &UniformPolicy).backward(ends, &mut rng).unwrap();
        let walks = backward.walks(&env).unwrap();
        let again = Trajectories::replay(&env, &walks.actions, &walks.offsets).unwrap();
        assert_eq!(env.keys(again.terminal_states()), env.keys(ends));
        // The intermediate states of the replay must be equal, too.
        assert_eq!(env.keys(again.states()), env.keys(backward.states()));
    }
}

#[test]
fn a_molecule_can_be_several_trees() {
    // Ethane has two trees: a single ethane fragment, and two methyl groups.
    let library = library("CC 0,1\nC 0");
    let env = Fragments::new(&library, 2).unwrap().into_env();
    let graph = StateGraph::build(&env, 100).unwrap();
    let smiles = |state: &GraphState| library.molecule(state).unwrap().smiles();
    let mut all: Vec<String> = graph.states().graphs().iter().skip(1).map(smiles).collect();
    all.sort();
    assert_eq!(all, ["C", "CC", "CC", "CCC", "CCCC"]);
}
