//! Tests that compare stereochemistry with RDKit's: the equality and the number of isomers. The results must
//! not depend on the order of atoms.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use gfn::Rng;
use gfn_molecules::{AtomSpec, Molecule, MoleculeError, StereoElement, StereoMark, ValenceTable};
use serde_json::Value;

fn read(text: &str) -> Molecule {
    Molecule::from_smiles(text).unwrap()
}

fn golden() -> Vec<Value> {
    let golden: Value = serde_json::from_str(include_str!("golden/stereoisomers.json")).unwrap();
    golden["cases"].as_array().unwrap().clone()
}

/// Returns the same molecule with its atoms, bonds and stereo marks in a random order.
fn shuffled(molecule: &Molecule, rng: &mut Rng) -> Molecule {
    let n = molecule.atoms().len();
    let mut place: Vec<usize> = (0..n).collect();
    let mut bonds: Vec<usize> = (0..molecule.bonds().len()).collect();
    for k in (1..n).rev() {
        place.swap(k, rng.below(k + 1));
    }
    for k in (1..bonds.len()).rev() {
        bonds.swap(k, rng.below(k + 1));
    }
    let mut atoms = vec![AtomSpec::from_element(molecule.atoms()[0].element); n];
    for (atom, &k) in molecule.atoms().iter().zip(&place) {
        atoms[k] = AtomSpec { element: atom.element, charge: atom.charge, hydrogens: Some(atom.hydrogens) };
    }
    let parts: Vec<_> = bonds
        .iter()
        .map(|&k| molecule.bonds()[k])
        .map(|bond| (place[bond.b], place[bond.a], bond.order))
        .collect();
    let odd = |atoms: Vec<usize>| {
        let mut odd = false;
        for i in 0..atoms.len() {
            for j in i + 1..atoms.len() {
                odd ^= (atoms[i] < atoms[j]) != (place[atoms[i]] < place[atoms[j]]);
            }
        }
        odd
    };
    let beside = |a: usize, but: Option<usize>| -> Vec<usize> {
        molecule.neighbours(a).map(|(b, _)| b).filter(|b| Some(*b) != but).collect()
    };
    let mark = |mark: &StereoMark| match mark.element {
        StereoElement::Centre(a) => StereoMark {
            element: StereoElement::Centre(place[a]),
            positive: mark.positive ^ odd(beside(a, None)),
        },
        StereoElement::DoubleBond(k) => {
            let bond = molecule.bonds()[k];
            let turned = odd(beside(bond.a, Some(bond.b))) ^ odd(beside(bond.b, Some(bond.a)));
            let new = bonds.iter().position(|other| *other == k).unwrap();
            StereoMark { element: StereoElement::DoubleBond(new), positive: mark.positive ^ turned }
        }
    };
    let marks: Vec<_> = molecule.marks().iter().map(mark).collect();
    Molecule::new(&ValenceTable::default(), &atoms, &parts).unwrap().with_marks(&marks).unwrap()
}

/// Tests that all texts of one isomer give equal molecules, and that texts of different isomers give
/// different molecules. If stereo marks are ignored, all texts must give the same molecule.
#[test]
fn isomers_are_those_of_rdkit() {
    let mut rng = Rng::seeded(1);
    let mut isomers = 0;
    let mut told = 0;
    for case in golden() {
        let flat = read(case["smiles"].as_str().unwrap());
        assert!(flat.marks().is_empty());
        let mut keys = BTreeSet::new();
        for texts in case["isomers"].as_array().unwrap() {
            let texts: Vec<&str> =
                texts.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
            let first = read(texts[0]);
            assert_eq!(first.without_stereo().key(), flat.key(), "{}", texts[0]);
            for text in &texts {
                let other = read(text);
                assert_eq!(other.key(), first.key(), "{text} {}", texts[0]);
                assert_eq!(other.smiles(), first.smiles(), "{text}");
                assert_eq!(other.automorphisms(), first.automorphisms(), "{text}");
            }
            for text in [first.smiles(), first.kekule_smiles()] {
                assert_eq!(read(&text).key(), first.key(), "{text}");
            }
            let moved = shuffled(&first, &mut rng);
            assert_eq!((moved.key(), moved.smiles()), (first.key(), first.smiles()), "{}", texts[0]);
            // The number of symmetries of the molecule without marks must be a multiple of the number with
            // marks.
            assert_eq!(flat.automorphisms().unwrap() % first.automorphisms().unwrap(), 0, "{}", texts[0]);
            told += usize::from(!first.marks().is_empty());
            assert!(keys.insert(first.key()), "{}", texts[0]);
        }
        isomers += keys.len();
        assert_eq!(flat.n_stereoisomers(), Some(keys.len() as u64), "{}", flat.smiles());
        let found: BTreeSet<_> = flat.stereoisomers().unwrap().iter().map(Molecule::key).collect();
        assert_eq!(found, keys, "{}", flat.smiles());
    }
    assert!(isomers > 200 && told > 200, "{isomers} isomers, {told} with marks");
}

/// Tests that molecules with different stereo marks are different isomers, unless a permutation of the atoms
/// maps the marks of one to those of the other. The test tries all permutations that preserve the molecule.
#[test]
fn keys_are_those_of_all_permutations() {
    let mut compared = [0, 0];
    for text in [
        "CC(O)C(O)C(C)O",
        "CC1CC(C)C1",
        "CC1C(C)C1C",
        "FC1CC(F)C1F",
        "CC=CC=CC",
        "CC=C1CC(C)C1",
        "C1CC2CC12",
        "CC1CC2(C1)CC(F)C2",
        "C1C2CC1C2",
        "FC(Cl)C(Br)C(F)Cl",
        "CC(F)=C(C)F",
        "C1CC2CC1C2",
        "CS(=O)CS(C)=O",
        "CN1CC1",
        "OC1C(O)C(O)C1O",
    ] {
        let flat = read(text);
        let elements = flat.stereo_elements();
        let set = |bits: usize| -> Vec<StereoMark> {
            let marks = elements.iter().enumerate();
            marks.map(|(k, &element)| StereoMark { element, positive: bits >> k & 1 == 0 }).collect()
        };
        let symmetries = symmetries(&flat);
        assert_eq!(symmetries.len() as u64, flat.automorphisms().unwrap(), "{text}");
        let isomers: Vec<Molecule> =
            (0..1 << elements.len()).map(|bits| flat.with_marks(&set(bits)).unwrap()).collect();
        for (i, one) in isomers.iter().enumerate() {
            for (j, other) in isomers.iter().enumerate() {
                let from = set(i);
                let to = set(j);
                let same = symmetries.iter().any(|place| moved(&flat, &from, place) == to);
                assert_eq!(one.key() == other.key(), same, "{text} {i} {j}");
                compared[usize::from(same)] += 1;
            }
            // The expected number of symmetries is the number of permutations that preserve the marks of the
            // isomer.
            let kept = symmetries.iter().filter(|place| {
                let now = moved(&flat, one.marks(), place);
                now == one.marks()
            });
            assert_eq!(one.automorphisms(), Some(kept.count() as u64), "{text} {i}");
        }
    }
    assert!(compared[0] > 200 && compared[1] > 100, "{compared:?}");
}

/// Returns all permutations of a molecule's atoms that preserve its atoms and bonds.
fn symmetries(molecule: &Molecule) -> Vec<Vec<usize>> {
    fn grow(molecule: &Molecule, place: &mut Vec<usize>, out: &mut Vec<Vec<usize>>) {
        let a = place.len();
        let atoms = molecule.atoms();
        if a == atoms.len() {
            out.push(place.clone());
            return;
        }
        let order =
            |a: usize, b: usize| molecule.neighbours(a).find(|(c, _)| *c == b).map(|(_, bond)| bond.order);
        for b in 0..atoms.len() {
            if !place.contains(&b)
                && atoms[a] == atoms[b]
                && (0..a).all(|c| order(a, c) == order(b, place[c]))
            {
                place.push(b);
                grow(molecule, place, out);
                place.pop();
            }
        }
    }
    let mut out = Vec::new();
    grow(molecule, &mut Vec::new(), &mut out);
    out
}

/// Returns the marks of a molecule after a permutation has moved each atom to its new index.
fn moved(molecule: &Molecule, marks: &[StereoMark], place: &[usize]) -> Vec<StereoMark> {
    let sorted = |a: usize, but: usize| -> Vec<usize> {
        let mut out: Vec<usize> = molecule.neighbours(a).map(|(b, _)| b).filter(|b| *b != but).collect();
        out.sort_unstable();
        out
    };
    let odd = |atoms: &[usize]| {
        let pairs = (0..atoms.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
        pairs.filter(|&(i, j)| place[atoms[i]] > place[atoms[j]]).count() % 2 == 1
    };
    let mut out: Vec<StereoMark> = marks
        .iter()
        .map(|mark| match mark.element {
            StereoElement::Centre(a) => {
                let positive = mark.positive ^ odd(&sorted(a, usize::MAX));
                StereoMark { element: StereoElement::Centre(place[a]), positive }
            }
            StereoElement::DoubleBond(k) => {
                let bond = molecule.bonds()[k];
                let ends = [place[bond.a], place[bond.b]];
                let new = molecule
                    .bonds()
                    .iter()
                    .position(|other| ends.contains(&other.a) && ends.contains(&other.b));
                let positive = mark.positive ^ odd(&sorted(bond.a, bond.b)) ^ odd(&sorted(bond.b, bond.a));
                StereoMark { element: StereoElement::DoubleBond(new.unwrap()), positive }
            }
        })
        .collect();
    out.sort_unstable();
    out
}

#[test]
fn marks_that_say_nothing_are_dropped_and_others_stay() {
    for (text, marks) in [
        // The two ends of the chain are equal, mirror images of each other, or neither. The number of marks
        // that remain depends on that.
        ("C[C@H](O)[C@H](O)[C@H](C)O", 2),
        ("C[C@H](O)[C@H](O)[C@@H](C)O", 3),
        ("C[C@H](O)[C@H](O)C(C)O", 2),
        ("C[C@H](C)O", 0),
        ("CC[C@H](CC)O", 0),
        // The first text has one of two marks that only have a meaning together, so no mark remains.
        ("C[C@H]1CCC(C)CC1", 0),
        ("C[C@H]1CC[C@H](C)CC1", 2),
        ("C[C@H]1[C@H](C)[C@@H]1C", 3),
        ("C/C=C1CCCCC/1", 0),
        ("C/C=C1CC(C)CC\\1", 1),
        // Atoms and bonds that have no two configurations keep no mark. A nitrogen in a ring of three and a
        // double bond in a ring of eight have two configurations.
        ("C[C@H2]O", 0),
        ("C[N@](F)Cl", 0),
        ("C[N@]1CC1C", 1),
        ("CC(=O)[N@]1CC1C", 0),
        ("C/C=C=C/C", 0),
        ("C1CCC/C=C\\1", 0),
        ("C1CCCCC/C=C\\1", 1),
        ("C1=C/C=C\\C=C/C=C\\1", 0),
    ] {
        let molecule = read(text);
        assert_eq!(molecule.marks().len(), marks, "{text}: {}", molecule.smiles());
        assert_eq!(molecule.smiles().contains(['@', '/', '\\']), marks > 0, "{text}");
    }
    // The key of a molecule whose marks are removed must equal the key of the same molecule read without
    // marks.
    assert_eq!(read("C[C@H](O)[C@H](O)[C@H](C)O").without_stereo().key(), read("CC(O)C(O)C(C)O").key());
    assert_eq!(
        (read("CC(O)C(C)O").automorphisms(), read("C[C@H](O)[C@@H](C)O").automorphisms()),
        (Some(2), Some(1))
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    let error = |text: &str| Molecule::from_smiles(text).unwrap_err();
    assert!(matches!(error("C/C(\\C)=C/F"), MoleculeError::Stereo { .. }));
    assert!(matches!(error("F/C=C/1CCC(C)/1"), MoleculeError::Syntax { .. }));
    for text in ["C[C@@@H](F)Cl", "C[C@TH1H](F)Cl", "/C", "C//C", "C/", "C(/)C"] {
        assert!(matches!(error(text), MoleculeError::Syntax { .. }), "{text}");
    }
    let triene = read("CC=CC=CC=CC");
    let mark = |bond: usize| StereoMark { element: StereoElement::DoubleBond(bond), positive: true };
    for marks in [vec![mark(0)], vec![mark(1), mark(1)], vec![mark(99)], vec![mark(1), mark(5)]] {
        let error = triene.with_marks(&marks).unwrap_err();
        assert!(matches!(error, MoleculeError::Stereo { .. }), "{error}");
    }
    assert_eq!(triene.with_marks(&[mark(1), mark(3)]).unwrap().marks().len(), 2);
    let centre = StereoMark { element: StereoElement::Centre(0), positive: true };
    assert!(triene.with_marks(&[centre]).is_err());
}

/// Writes the results that `scripts/molecules/stereo.py` compares with RDKit. The variables `GFN_SMILES` and
/// `GFN_FOUND` name the input file and the output file. For each line of the input the output has the
/// canonical SMILES, the SMILES without marks, the key and the number of stereoisomers, or the error. If the
/// variables aren't set, the test reads the golden file.
#[test]
fn what_rdkit_is_compared_with() {
    let golden =
        || golden().iter().map(|case| case["smiles"].as_str().unwrap().to_owned() + "\n").collect::<String>();
    let given = std::env::var("GFN_SMILES").ok().map(|path| std::fs::read_to_string(path).unwrap());
    let mut found = String::new();
    for smiles in given.unwrap_or_else(golden).lines() {
        found += &match Molecule::from_smiles(smiles) {
            Ok(molecule) => {
                let flat = molecule.without_stereo();
                let isomers = molecule.n_stereoisomers();
                let mut key = DefaultHasher::new();
                molecule.key().hash(&mut key);
                let isomers = isomers.map_or("many".to_owned(), |isomers| isomers.to_string());
                format!("{}\t{}\t{:016x}\t{isomers}\n", molecule.smiles(), flat.smiles(), key.finish())
            }
            Err(error) => format!("{error}\n").replace('\t', " "),
        };
    }
    match std::env::var("GFN_FOUND") {
        Ok(path) => std::fs::write(path, found).unwrap(),
        Err(_) => assert!(found.lines().all(|line| line.split('\t').count() == 4), "{found}"),
    }
}
