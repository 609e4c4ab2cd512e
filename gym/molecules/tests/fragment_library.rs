//! Tests of fragment libraries: the standard library, invalid libraries, and invalid graphs and moves.

use gfn::Error;
use gfn::env::{Direction, DiscreteEnv, Env, Slots};
use gfn::graph::{Attributes, Edge, GraphKind, GraphState, GraphStates, Node, canonical_key};
use gfn_molecules::fragments::{Fragment, FragmentError, FragmentLibrary, Fragments};

fn library(text: &str) -> FragmentLibrary {
    FragmentLibrary::parse(text).unwrap()
}

#[test]
fn the_standard_library_is_what_it_says() {
    let library = FragmentLibrary::standard().unwrap();
    let symmetries = |smiles: &str| {
        let fragment = library.fragments().iter().find(|fragment| fragment.smiles() == smiles).unwrap();
        fragment.n_symmetries()
    };
    assert!((20..=40).contains(&library.fragments().len()));
    assert_eq!(
        [symmetries("c1ccccc1"), symmetries("n1ccccc1"), symmetries("N1CCNCC1"), symmetries("C=C")],
        [12, 2, 2, 2]
    );
    assert_eq!([symmetries("C1CCCCC1"), symmetries("C(F)(F)F"), symmetries("O=CN")], [2, 1, 1]);
}

#[test]
fn the_published_lists_are_whole() {
    let all = FragmentLibrary::bengio2021().unwrap();
    let reduced = FragmentLibrary::bengio2021_reduced().unwrap();
    let stems =
        |library: &FragmentLibrary| library.fragments().iter().map(|one| one.stems().len()).sum::<usize>();
    assert_eq!(
        [all.fragments().len(), stems(&all), reduced.fragments().len(), stems(&reduced)],
        [72, 127, 18, 35]
    );
    // Each fragment of the reduced list must be the same molecule as a fragment of the full list. The stems
    // (atoms at which others can be attached) may differ.
    let known =
        |one: &Fragment| all.fragments().iter().any(|other| other.molecule().key() == one.molecule().key());
    assert!(reduced.fragments().iter().all(known));
}

#[test]
fn libraries_that_make_no_sense_are_refused_with_the_line() {
    let cases = [
        ("C 0\n\nCC", 3, "doesn't have two words"),
        ("C 0\nN 0 1", 2, "doesn't have two words"),
        ("# rings\nc1ccccc1 0,x", 2, "\"x\" isn't the number of an atom"),
        ("C1CC 0", 1, "C1CC"),
        ("CC(C)(C)(C)C 0", 1, "atom 1 (C, charge 0) has valence 5"),
        ("C 0\nCl 1", 2, "no atom 1 that could be a stem"),
        ("Cl 0,0", 1, "listed 2 times, but has 1 hydrogens"),
        ("c1cccnc1 4", 1, "has 0 hydrogens"),
        ("OCC 1,2\nC 0\nCCO 1,0", 3, "is listed twice, first in line 1"),
    ];
    for (text, expected, problem) in cases {
        let error = FragmentLibrary::parse(text).unwrap_err();
        let Error::Parse { line, .. } = error else { panic!("{error}") };
        assert_eq!(line, expected, "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
    // The error message must give the number of all bad lines and quote ten of them.
    let message = FragmentLibrary::parse("C 0\nC1 0\nCl 1\nC 0").unwrap_err().to_string();
    for told in [
        "line 2: ",
        "; line 3: Cl has no atom 1",
        "; line 4: C with these stems is listed twice, first in line 1; expected",
    ] {
        assert!(message.contains(told), "{message}");
    }
    let message = FragmentLibrary::parse(&"Cl 1\n".repeat(13)).unwrap_err().to_string();
    assert!(
        message.contains("; line 10: ") && message.contains("; and 3 more lines have problems; expected"),
        "{message}"
    );
    // Stereochemistry in a fragment's SMILES is ignored, and the number of ignored marks is counted.
    assert_eq!(
        ["C[C@H](N)O", "C/C=C/C", "CC"].map(|text| Fragment::new(text, &[0]).unwrap().left_out().stereo),
        [1, 1, 0]
    );
    // A library that is written as text must be readable again.
    let all = FragmentLibrary::standard().unwrap();
    let text: Vec<String> = all.fragments().iter().map(Fragment::to_string).collect();
    assert_eq!(library(&text.join("\n")), all);
    // Fragments with the same molecule but different stems (attachment points) are different fragments.
    assert_eq!(library("OCC 1,2\nCCO 1").fragments().len(), 2);
    let message = FragmentLibrary::parse("# nothing\n").unwrap_err().to_string();
    assert!(message.contains("a library of fragments is 0"), "{message}");
    let twice = vec![Fragment::new("CO", &[0]).unwrap(), Fragment::new("OC", &[1]).unwrap()];
    assert!(FragmentLibrary::new(twice).unwrap_err().to_string().contains("fragments 0 and 1 are the same"));
    assert!(matches!(Fragment::new("C", &[]), Err(FragmentError::NoStem { .. })));
    // Six methyl groups on sulphur have 720 permutations. Six tert-butyl groups have far more symmetries,
    // because each group has six symmetries itself.
    assert_eq!(Fragment::new("S(C)(C)(C)(C)(C)C", &[1, 2, 3, 4, 5, 6]).unwrap().n_symmetries(), 720);
    let butyls = format!("S{}C(C)(C)C", "(C(C)(C)C)".repeat(5));
    let ends: Vec<usize> = (0..6).flat_map(|k| (2..5).map(move |a| 4 * k + a)).collect();
    let error = Fragment::new(&butyls, &ends).unwrap_err();
    assert!(matches!(error, FragmentError::TooMany { what: "symmetries", .. }), "{error}");
    // Symmetries that move only atoms that aren't stems (attachment points) must not be counted.
    assert_eq!(Fragment::new(&butyls, &[2]).unwrap().n_symmetries(), 1);
    assert!(library("C 0").fragments()[0].is_same(&Fragment::new("C", &[0]).unwrap()));
    for n in [0, 1_001] {
        let message = Fragments::new(&library("C 0"), n).unwrap_err().to_string();
        assert!(message.contains(&format!("max_fragments is {n}")), "{message}");
    }
    // A graph that another environment built isn't a tree of fragments and must be refused.
    let foreign = GraphState::with_nodes(GraphKind::Undirected, 2);
    assert!(library("C 0").molecule(&foreign).unwrap_err().to_string().contains("a tree of fragments"));
}

/// Tests a fragment with twelve stems (attachment points) that aren't bonded to each other. There are 12!
/// permutations of the stems, but only the 24 that preserve distances are symmetries. The symmetries must be
/// found in a short time.
#[test]
fn symmetries_of_a_large_ring_are_found_in_time() {
    let ring = |stems: &[usize]| Fragment::new(&format!("C1(C){}C1C", "C(C)".repeat(10)), stems).unwrap();
    let methyls: Vec<usize> = (0..12).map(|k| 2 * k + 1).collect();
    assert_eq!(ring(&methyls).n_symmetries(), 24);
    // With eleven of the twelve methyl groups as stems (attachment points), the only symmetry besides the
    // identity is a reflection. It doesn't matter which group is left out.
    assert_eq!(ring(&methyls[1..]).n_symmetries(), 2);
    assert!(ring(&methyls[1..]).is_same(&ring(&methyls[..11])));
    assert!(!ring(&[1, 3]).is_same(&ring(&[1, 5])));
}

#[test]
fn stems_in_all_are_limited_wherever_a_library_comes_from() {
    let chain = |n: usize| Fragment::new(&"C".repeat(n), &(0..n).collect::<Vec<_>>()).unwrap();
    let chains: Vec<Fragment> = (0..17).map(|k| chain(254 - k)).collect();
    let text: Vec<String> = chains.iter().map(Fragment::to_string).collect();
    for result in [FragmentLibrary::parse(&text.join("\n")), FragmentLibrary::new(chains.clone())] {
        let message = result.unwrap_err().to_string();
        assert!(message.contains("a library with 4182 stems, expected at most 4,096"), "{message}");
    }
    assert_eq!(FragmentLibrary::new(chains[..16].to_vec()).unwrap().fragments().len(), 16);
}

#[test]
fn fragments_that_make_no_sense_are_errors_of_the_library() {
    let message = |error: FragmentError| Error::from(error).to_string();
    assert!(message(Fragment::new("C", &[]).unwrap_err()).contains("a fragment is not valid (C has no stem"));
    assert!(message(Fragment::new("C(", &[0]).unwrap_err()).contains("the molecule is not valid ("));
}

/// Builds a graph of fragments from the classes of its nodes and from its bonds. A bond is its two nodes
/// followed by the stem (attachment point) on each node, counted from 1; 0 means that the stem is unset.
fn graph(classes: &[u16], bonds: &[(u32, u32, u8, u8)]) -> GraphState {
    let arc = |stems: [u8; 2]| Edge { class: 0, attributes: Attributes::new(&stems).unwrap() };
    let arcs = bonds.iter().flat_map(|&(a, b, s, t)| [(a, b, arc([s, t])), (b, a, arc([t, s]))]);
    let nodes: Vec<Node> = classes.iter().map(|&class| Node::from_class(class)).collect();
    GraphState::from_parts(GraphKind::Directed, &nodes, &arcs.collect::<Vec<_>>()).unwrap()
}

#[test]
fn states_are_trees_in_normal_form_and_nothing_else() {
    let trees = Fragments::new(&library("c1ccccc1 0,1,2,3,4,5\nC 0"), 3).unwrap();
    let env = trees.env().clone();
    // m-Xylene can be written as twelve graphs. All of them have the same normal form, and only graphs in
    // normal form are reachable.
    let writings = (0..6).flat_map(|k| [(k, (k + 2) % 6), ((k + 2) % 6, k)]);
    let all: Vec<GraphState> =
        writings.map(|(s, t)| graph(&[0, 1, 1], &[(0, 1, s + 1, 1), (0, 2, t + 1, 1)])).collect();
    let normal: Vec<GraphState> = all.iter().map(|graph| trees.state(graph).unwrap()).collect();
    let is_normal = |state: &GraphState| {
        canonical_key(state) == canonical_key(&normal[0]) && env.rules().is_reachable(state)
    };
    assert!(normal.iter().all(is_normal));
    let reachable = all.iter().filter(|graph| env.rules().is_reachable(graph)).count();
    assert_eq!(reachable, all.iter().filter(|graph| normal.contains(graph)).count());
    assert!((1..=2).contains(&reachable), "{reachable}");
    assert!(
        env.rules().is_reachable(&env.initial_graphs()[0])
            && trees.state(&env.initial_graphs()[0]).unwrap() == env.initial_graphs()[0]
    );

    let arc = Edge { class: 0, attributes: Attributes::new(&[1, 1]).unwrap() };
    let cycle = [(0, 1, arc), (1, 2, arc), (2, 0, arc)];
    let marked = Node { class: 1, attributes: Attributes::new(&[1]).unwrap() };
    let strange = [
        ("unset stems", graph(&[0, 1], &[(0, 1, 0, 0)])),
        ("one unset stem", graph(&[0, 1], &[(0, 1, 1, 0)])),
        ("too many", graph(&[0, 1, 1, 1], &[(0, 1, 1, 1), (0, 2, 2, 1), (0, 3, 3, 1)])),
        ("no such stem", graph(&[0, 1], &[(0, 1, 1, 2)])),
        ("no room", graph(&[0, 1, 1], &[(0, 1, 1, 1), (0, 2, 1, 1)])),
        ("no such fragment", graph(&[7], &[])),
        ("in parts", graph(&[0, 1], &[])),
        ("a cycle", GraphState::from_parts(GraphKind::Directed, &[Node::from_class(0); 3], &cycle).unwrap()),
        ("attributes", GraphState::from_parts(GraphKind::Directed, &[marked], &[]).unwrap()),
        ("another kind", GraphState::new(GraphKind::Undirected)),
    ];
    for (what, graph) in strange {
        assert!(!env.rules().is_reachable(&graph), "{what}");
        assert!(matches!(trees.state(&graph), Err(Error::Config { .. })), "{what}");
        assert!(what == "too many" || env.log_automorphisms(&graph).is_err(), "{what}");
        // Masks and steps in an invalid graph must neither panic nor hang.
        for direction in [Direction::Forward, Direction::Backward] {
            let states = GraphStates::from(vec![graph.clone()]);
            for slot in 0..env.masks(direction, &states).slot_ptr[1] {
                let _ = env.step(direction, &mut states.clone(), &Slots(vec![slot as u32]));
            }
        }
    }
}

#[test]
fn illegal_moves_are_errors_and_change_nothing() {
    let trees = Fragments::new(&library("c1ccccc1 0,1,2,3,4,5\nC 0"), 3).unwrap();
    let env = trees.env().clone();
    let mut refused = 0;
    for tree in [
        graph(&[1], &[]),
        graph(&[0, 1], &[(0, 1, 1, 1)]),
        graph(&[0, 1, 1], &[(0, 1, 1, 1), (0, 2, 2, 1)]),
        graph(&[1, 1], &[(0, 1, 1, 1)]),
    ] {
        let states = GraphStates::from(vec![trees.state(&tree).unwrap()]);
        for direction in [Direction::Forward, Direction::Backward] {
            let masks = env.masks(direction, &states);
            let mut first = 0;
            for block in &masks.blocks {
                let slots = first..first + block.row_ptr[1] * block.width;
                first = slots.end;
                for slot in slots.filter(|_| block.name == "attach_fragment") {
                    let mut stepped = states.clone();
                    let result = env.step(direction, &mut stepped, &Slots(vec![slot as u32]));
                    assert_eq!(result.is_ok(), masks.legal[slot], "{direction} {slot} of {tree:?}");
                    if let Err(error) = result {
                        assert!(matches!(error, Error::Contract { .. }), "{error}");
                        assert_eq!(stepped, states);
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 200, "{refused}");
}
