//! Tests of trees of fragments that become equal if fragments are rotated or reflected: their normal form,
//! and the renaming of stems (atoms to which others can be attached).

use gfn::env::{Direction, Env};
use gfn::graph::{Attributes, Edge, GraphKind, GraphState, GraphStates, Move, Node, canonical_key};
use gfn_molecules::Molecule;
use gfn_molecules::fragments::{FragmentLibrary, Fragments};

/// The number of stems (atoms to which others can be attached) of all fragments in the fragment library: the
/// six stems of benzene, and the stem of methane.
const PORTS: u32 = 7;
/// The index of methane's stem (the atom to which others can be attached) among the seven stems of the
/// fragment library.
const METHYL: u32 = 6;

/// Creates the environment whose objects are trees of benzene and methane.
fn trees() -> Fragments {
    Fragments::new(&FragmentLibrary::parse("c1ccccc1 0,1,2,3,4,5\nC 0").unwrap(), 5).unwrap()
}

/// Builds a tree of benzene, node 0, with two methyl groups, nodes 1 and 2. `one` and `other` are the stems
/// of benzene to which the groups are attached.
fn xylene(one: u8, other: u8) -> GraphState {
    let arc =
        |stem: u8, own: u8| Edge { class: 0, attributes: Attributes::new(&[stem + 1, own + 1]).unwrap() };
    let nodes = [Node::from_class(0), Node::from_class(1), Node::from_class(1)];
    let edges = [(0, 1, arc(one, 0)), (1, 0, arc(0, one)), (0, 2, arc(other, 0)), (2, 0, arc(0, other))];
    GraphState::from_parts(GraphKind::Directed, &nodes, &edges).unwrap()
}

#[test]
fn turned_trees_have_one_normal_form_and_others_another() {
    let trees = trees();
    let normal = |one, other| {
        let state = trees.state(&xylene(one, other)).unwrap();
        assert_eq!(trees.state(&state).unwrap(), state, "a normal form is turned no further");
        canonical_key(&state)
    };
    for one in 0..6 {
        for step in 1..6 {
            assert_eq!(normal(one, (one + step) % 6), normal(0, step.min(6 - step)));
        }
    }
    assert!(normal(0, 1) != normal(0, 2) && normal(0, 2) != normal(0, 3) && normal(0, 1) != normal(0, 3));
}

/// Tests the renaming of an action that attaches a fragment to a stem of benzene. The action is renamed from
/// one graph of m-xylene to another, in which the two methyl groups (nodes 1 and 2) have exchanged their
/// stems. Group 2 is on stem 2 in the first graph, so stem 3 is next to it. In the second graph group 2 is on
/// stem 0, so stem 5 is next to it. Stem 3 must therefore become stem 5.
#[test]
fn a_stem_is_renamed_with_what_it_is_next_to() {
    let trees = trees();
    let (_, attach) =
        trees.env().actions().types().find(|(_, action)| action.name() == "attach_fragment").unwrap();
    let one = xylene(0, 2);
    let other = xylene(2, 0);
    let onto = |stem: u32| Move { a: 0, b: 0, class: stem * PORTS + METHYL };
    let renamed = attach.rename(Direction::Forward, onto(3), &[0, 1, 2], &one, &other);
    assert_eq!(renamed, onto(5));
    // If the nodes of the two methyl groups are exchanged, too, the stem keeps its number.
    assert_eq!(attach.rename(Direction::Forward, onto(3), &[0, 2, 1], &one, &other), onto(3));
}

/// Tests that messages describe a tree by the SMILES of its molecule and by its graph.
#[test]
fn messages_name_the_molecule_of_a_tree() {
    let trees = trees();
    let states = GraphStates::from(vec![trees.state(&xylene(0, 2)).unwrap()]);
    let words = trees.env().describe_state(&states, 0).unwrap();
    let (name, graph) = words.split_once(" (").unwrap();
    let meta_xylene = Molecule::from_smiles("Cc1cccc(C)c1").unwrap();
    assert_eq!(name, meta_xylene.smiles());
    assert_eq!(graph, format!("{})", states.graphs()[0]));
}
