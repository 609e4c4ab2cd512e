//! Tests that a molecule's key doesn't depend on its spelling, and tests of Kekule forms.

use std::collections::BTreeSet;

use gfn::Rng;
use gfn::graph::{Edge, GraphKind, GraphState, Node, log_automorphisms};
use gfn_molecules::{AtomSpec, Bond, BondOrder, Element, Molecule, ValenceTable};

/// The SMILES of buckminsterfullerene.
const BALL: &str = "\
    c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10\
    c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5c1c1c6c2c3c41";

/// Returns the SMILES of a random branch that consists of rings and chains.
fn grown(rng: &mut Rng, depth: usize) -> String {
    const ENDS: [&str; 6] = ["C", "O", "F", "c9ccccc9", "C9CC9", "[N+](=O)[O-]"];
    const LINKS: [&str; 8] = [
        "C(_)_",
        "N_",
        "c9ccc(_)cc9",
        "c9cc(_)cc(_)c9",
        "c9cc_ccn9",
        "c9cc8ccc(_)cc8cc9_",
        "C9CCC(_)CC9",
        "C(_)(_)_",
    ];
    if depth == 0 || rng.below(4) == 0 {
        return ENDS[rng.below(ENDS.len())].into();
    }
    let link =
        LINKS[rng.below(LINKS.len())].replace("c9cc_ccn9", "c9cc(_)ccn9").replace("c8cc9_", "c8cc9(_)");
    // Some branches are equal, so that the molecule has symmetries.
    let same = (rng.below(3) == 0).then(|| grown(rng, depth - 1));
    let mut out = String::new();
    for piece in link.split_inclusive('_') {
        out += piece.trim_end_matches('_');
        if piece.ends_with('_') {
            out += &same.clone().unwrap_or_else(|| grown(rng, depth - 1));
        }
    }
    out
}

fn molecules() -> Vec<Molecule> {
    let golden: serde_json::Value = serde_json::from_str(include_str!("golden/molecules.json")).unwrap();
    let valid = golden["cases"].as_array().unwrap().iter().filter(|case| case["valid"] == true);
    let mut texts: Vec<String> = valid.map(|case| case["smiles"].as_str().unwrap().into()).collect();
    let mut rng = Rng::seeded(11);
    texts.extend((0..400).map(|_| grown(&mut rng, 3)));
    // Further cases are cages, spiro rings, buckminsterfullerene, and rings within rings.
    for text in [
        "C12C3C4C1C5C2C3C45",
        "C1C2CC3CC1CC(C2)C3",
        "C1CC11CC1",
        "C1CC2(C1)CC1(CC1)C2",
        "C1CC2CCC1CC2",
        "C",
        BALL,
        "c1cc2ccc1-c1ccc(cc1)-c1ccc(cc1)-c1ccc-2cc1",
    ] {
        texts.push(text.into());
    }
    texts.iter().filter_map(|text| Molecule::from_smiles(text).ok()).collect()
}

/// Tests that the key of a molecule doesn't depend on the order of the atoms.
#[test]
fn keys_do_not_depend_on_the_order_of_atoms() {
    let molecules = molecules();
    assert!(molecules.len() > 500, "{}", molecules.len());
    let mut rng = Rng::seeded(4);
    let mut keys = BTreeSet::new();
    for molecule in &molecules {
        let n = molecule.atoms().len();
        let mut place: Vec<u32> = (0..n as u32).collect();
        for k in (1..n).rev() {
            place.swap(k, rng.below(k + 1));
        }
        let mut specs = vec![AtomSpec::from_element(Element::C); n];
        for (atom, &k) in molecule.atoms().iter().zip(&place) {
            let hydrogens = Some(atom.hydrogens);
            specs[k as usize] = AtomSpec { element: atom.element, charge: atom.charge, hydrogens };
        }
        let bonds: Vec<_> = molecule
            .bonds()
            .iter()
            .rev()
            .map(|b| (place[b.b] as usize, place[b.a] as usize, b.order))
            .collect();
        let other = Molecule::new(&ValenceTable::default(), &specs, &bonds).unwrap();
        assert_eq!(molecule.key(), other.key(), "{}", molecule.smiles());
        keys.insert(molecule.key());
    }
    assert!(keys.len() > 300, "{}", keys.len());
}

/// Tests that buckminsterfullerene has 12,500 placements of double bonds, of which 158 are different up to
/// symmetry (Vukicevic, Kroto and Randic 2005).
#[test]
#[ignore = "half a minute or more: `scripts/check_all` runs it"]
fn forms_of_the_ball_are_those_of_the_literature() {
    let ball = Molecule::from_smiles(BALL).unwrap();
    assert_eq!((ball.n_kekule_forms(), ball.automorphisms()), (Some(158), Some(120)));
    // The molecule has 120 symmetries. If s of them preserve a Kekule form, the form represents 120 / s
    // placements.
    let symmetries = |form: &Molecule| {
        let nodes = vec![Node::default(); 60];
        let order = |bond: &Bond| u16::from(bond.order == BondOrder::Double);
        let bonds =
            form.bonds().iter().map(|bond| (bond.a as u32, bond.b as u32, Edge::from_class(order(bond))));
        let graph =
            GraphState::from_parts(GraphKind::Undirected, &nodes, &bonds.collect::<Vec<_>>()).unwrap();
        log_automorphisms(&graph).unwrap().exp().round() as usize
    };
    let placements = ball.kekule_forms().unwrap().iter().map(|form| 120 / symmetries(form)).sum::<usize>();
    assert_eq!(placements, 12_500);
}
