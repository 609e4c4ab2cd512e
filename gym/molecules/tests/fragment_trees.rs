//! Tests of the decomposition of molecules into trees of fragments: comparison with all trees of small
//! environments and with roll-outs, and the running time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use gfn::Rng;
use gfn::env::StateGraph;
use gfn::graph::{CanonicalKey, GraphState, canonical_key};
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn_molecules::Molecule;
use gfn_molecules::fragments::{FragmentLibrary, Fragments};

fn library(text: &str) -> FragmentLibrary {
    FragmentLibrary::parse(text).unwrap()
}

fn published() -> FragmentLibrary {
    FragmentLibrary::bengio2021().unwrap()
}

fn keys<'a>(trees: impl IntoIterator<Item = &'a GraphState>) -> BTreeSet<CanonicalKey> {
    trees.into_iter().map(canonical_key).collect()
}

/// Fragment libraries, each with the maximum number of fragments of a molecule. The libraries have rings with
/// rotational symmetry, stems (attachment points) that can take several fragments, stems that aren't
/// equivalent, molecules that can be built as many trees, and fragments that contain each other.
const SMALL: [(&str, usize); 6] = [
    ("c1ccccc1 0,1,2,3,4,5\nN 0,0,0\nCC 0,1\nO=CN 1,2\nC(F)(F)F 0", 3),
    ("C 0,0,0,0\nCC 0,0,1,1\nCCC 0,1,2\nC(C)(C)C 0,1", 3),
    ("C1CCCCC1 0,1,2,3\nO 0,0\nOCCO 0,3\nCC 0,1", 3),
    ("CC 0,1\nC 0", 2),
    ("C1CNCCN1 0,2,5\nN1CC1 0,1\nO 0,0", 3),
    ("c1cc[nH+]cc1 0,1,2\n[O-]C=O 1\nC[NH3+] 0,1\nc1ccncc1 0,1,2,4,5", 3),
];

/// Tests that decomposing a molecule gives exactly the states of the environment that represent this
/// molecule.
#[test]
fn a_molecule_is_all_the_trees_that_lead_to_it() {
    for (text, max_fragments) in SMALL {
        let library = library(text);
        let trees = Fragments::new(&library, max_fragments).unwrap();
        let env = trees.env().clone();
        let space = StateGraph::build(&env, 1 << 17).unwrap();
        let mut by_molecule: BTreeMap<CanonicalKey, (Molecule, Vec<GraphState>)> = BTreeMap::new();
        for state in space.states().graphs().iter().skip(1) {
            let molecule = library.molecule(state).unwrap();
            by_molecule.entry(molecule.key()).or_insert((molecule, Vec::new())).1.push(state.clone());
        }
        let mut several = 0;
        let mut larger = 0;
        for (molecule, states) in by_molecule.values() {
            let found = library.trees(molecule, 100_000).unwrap();
            let (within, beyond): (Vec<GraphState>, _) =
                found.iter().cloned().partition(|tree| tree.n_nodes() <= max_fragments);
            assert_eq!(keys(&within), keys(states), "{} of {text:?}", molecule.smiles());
            assert_eq!(keys(&found).len(), found.len(), "{}: one tree twice", molecule.smiles());
            for tree in &found {
                assert_eq!(library.molecule(tree).unwrap().key(), molecule.key());
            }
            // A tree with at most `max_fragments` fragments must already be a state of the environment, so
            // that `state` returns it unchanged.
            assert!(within.iter().all(|tree| keys([&trees.state(tree).unwrap()]) == keys([tree])));
            assert_eq!(keys(&trees.trees(molecule, 100_000).unwrap()), keys(states));
            several += usize::from(found.len() > 1);
            larger += beyond.len();
            for most in [0, 1, 2, 3, found.len() + 1] {
                let some = library.trees(molecule, most).unwrap();
                assert!(keys(&some).is_subset(&keys(&found)));
                assert_eq!(some.len(), most.min(found.len()), "{} of {text:?}", molecule.smiles());
            }
        }
        println!(
            "{text:?}: {} states, {} molecules, {several} of several trees, {larger} trees of more fragments",
            space.len() - 1,
            by_molecule.len()
        );
        assert!(several > 0 || text.starts_with("C1CNCCN1") || text.starts_with("c1cc"), "{text:?}");
    }
}

#[test]
fn trees_of_roll_outs_are_among_those_of_their_molecules() {
    for (library, max_fragments) in [(FragmentLibrary::standard().unwrap(), 6), (published(), 9)] {
        let env = Fragments::new(&library, max_fragments).unwrap().into_env();
        let samples = Sampler::new(&env, &UniformPolicy).forward(1_500, &mut Rng::seeded(1)).unwrap();
        let mut longest = Duration::ZERO;
        let mut most = 0;
        let mut sum = 0;
        // The test takes the first 100 sampled states, and the 100 largest of the others.
        let mut states: Vec<&GraphState> = samples.terminal_states().graphs().iter().collect();
        states[100..].sort_by_key(|state| std::cmp::Reverse(state.n_nodes()));
        let large = states[100..200].iter().filter(|state| state.n_nodes() == max_fragments).count();
        assert!(large >= 25, "{large}");
        for state in &states[..200] {
            let molecule = library.molecule(state).unwrap();
            let began = Instant::now();
            let found = library.trees(&molecule, 1 << 20).unwrap();
            longest = longest.max(began.elapsed());
            assert!(
                found.iter().any(|tree| canonical_key(tree) == canonical_key(state)),
                "{}",
                molecule.smiles()
            );
            for tree in &found {
                assert_eq!(library.molecule(tree).unwrap().key(), molecule.key(), "{}", molecule.smiles());
            }
            (most, sum) = (most.max(found.len()), sum + found.len());
        }
        println!(
            "{} fragments: {sum} trees of 200 molecules, {large} of them of {max_fragments} fragments; at \
             most {most}, {longest:?}",
            library.fragments().len()
        );
        // Decomposition takes a second. The limit is higher, so that the test also passes on a busy machine.
        assert!(longest < Duration::from_secs(10), "{longest:?}");
    }
}

/// Tests drugs, most of which can't be built from the fragments of Bengio et al. (2021). The library must
/// detect such molecules within a time limit.
#[test]
fn molecules_that_are_no_trees_are_known_in_time() {
    let drugs = [
        "Cc1ccc(cc1Nc1nccc(n1)-c1cccnc1)NC(=O)c1ccc(cc1)CN1CCN(C)CC1",
        "COc1cc2ncnc(c2cc1OCCCN1CCOCC1)Nc1ccc(F)c(Cl)c1",
        "CCOc1nc2cccc(c2n1Cc1ccc(cc1)-c1ccccc1-c1nnn[nH]1)C(=O)O",
        "CC(C)c1n(CCC(O)CC(O)CC(=O)O)c(c(c1C(=O)Nc1ccccc1)-c1ccccc1)-c1ccc(F)cc1",
        "CN1CCN(CC1)c1nc2ccccc2nc1NS(=O)(=O)c1ccc(cc1)OCC(O)CNC(C)C",
        "CCCc1nn(C)c2c1nc([nH]c2=O)-c1cc(ccc1OCC)S(=O)(=O)N1CCN(C)CC1",
        "CC(C)(C)NC(=O)C1CN(CCN1CC(O)CC(Cc1ccccc1)C(=O)NC1c2ccccc2CC1O)Cc1cccnc1",
        "CC(=O)Oc1ccccc1C(=O)O",
        "CN1C(=O)CN=C(c2ccccc2)c2cc(Cl)ccc21",
        "COc1ccc2[nH]c(nc2c1)S(=O)Cc1ncc(C)c(OC)c1C",
        "CC(C)NCC(O)COc1cccc2ccccc12",
        "OC(=O)CCCCCCCCCCCCCCCCCCCCC(CCCCCCCC)CCCCCC(CCC)CCCC",
    ];
    let library = published();
    let mut made = 0;
    for text in drugs {
        let molecule = Molecule::from_smiles(text).unwrap();
        let began = Instant::now();
        let found = library.trees(&molecule, 1_000).unwrap();
        println!("{} trees in {:?}: {text}", found.len(), began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(10));
        assert!(found.iter().all(|tree| library.molecule(tree).unwrap().key() == molecule.key()));
        made += usize::from(!found.is_empty());
    }
    println!("{made} of {}", drugs.len());
}

/// Tests that trees of few fragments are found among many larger trees. A chain of 20 carbons in at most five
/// fragments has a single tree: five fragments of four carbons.
#[test]
fn small_trees_are_found_among_many() {
    let library = library("C 0,0,0,0\nCC 0,1\nCCC 0,2\nCCCC 0,3");
    let trees = Fragments::new(&library, 5).unwrap();
    let found = |n: usize| {
        let began = Instant::now();
        let found = trees.trees(&Molecule::from_smiles(&"C".repeat(n)).unwrap(), 1_000).unwrap();
        println!("{n} carbons: {} trees in {:?}", found.len(), began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(10));
        found.len()
    };
    // A chain of 19 carbons is four fragments of four carbons and one of three. The latter may be at an end,
    // next to an end, or in the middle, so there are 3 trees.
    assert_eq!([21, 20, 19].map(found), [0, 1, 3]);
}

/// Tests that equal branches of a molecule cause no additional work. The dendrimer can be cut into pieces of
/// one and two carbons in 3.8 million ways, one for each matching of its bonds. Up to symmetry there are only
/// 84 ways if the central atom is a piece by itself, and 4 times 28 ways otherwise.
#[test]
fn branches_that_are_alike_are_no_more_work() {
    let library = library("C 0,0,0,0\nCC 0,0,0,1,1,1");
    let dendrimer = |text: &str| format!("C({text})({text}){text}");
    let text = dendrimer(&dendrimer(&dendrimer("C")));
    let molecule = Molecule::from_smiles(&text).unwrap();
    let began = Instant::now();
    let found = library.trees(&molecule, 500).unwrap();
    println!("{text}: {} trees in {:?}", found.len(), began.elapsed());
    assert_eq!((keys(&found).len(), found.len()), (196, 196));
    assert!(began.elapsed() < Duration::from_secs(20));
}
