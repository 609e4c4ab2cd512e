//! Tests of unusual SMILES: aromatic bonds, fused rings whose bond orders aren't written, texts of thousands
//! of atoms, and files with salts.

use std::time::{Duration, Instant};

use gfn::{Error, Rng};
use gfn_molecules::{
    AtomSpec, BondOrder, Element, KnownMolecules, Molecule, MoleculeError, NotRead, ReadReport, SkipReason,
    ValenceTable,
};
use serde_json::Value;

fn read(smiles: &str) -> Molecule {
    Molecule::from_smiles(smiles).unwrap()
}

#[test]
fn aromatic_bonds_are_given_orders_whatever_the_case_of_the_atoms() {
    // The second text is the result of RDKit for the first text.
    for (text, same) in [
        ("C1:C:C:C:C:C:1", "c1ccccc1"),
        ("C1:C:C:C:C:C1", "c1ccccc1"),
        ("c1:c:c:c:c:c:1", "c1ccccc1"),
        ("C1:C:C:C:C:C:1C", "Cc1ccccc1"),
        ("C1:C:C:C:C:C:1C1:C:C:C:C:C:1", "c1ccc(-c2ccccc2)cc1"),
        ("C1:C:C:[NH]:C:1", "c1cc[nH]c1"),
        ("C1:C:C:O:C:1", "c1ccoc1"),
        ("C1:CC:CC:C1", "C1=CC=CC=C1"),
        ("C1CCCCC:1", "C1=CCCCC1"),
        ("C1:C:C:C:C:C:C:C:1", "C1=CC=CC=CC=C1"),
    ] {
        assert_eq!(read(text).key(), read(same).key(), "{text}");
    }
    assert!(matches!(Molecule::from_smiles("C1:C:C:N:C:1"), Err(MoleculeError::Kekulise { .. })));
    for (text, bond) in [("C:C", (0, 1)), ("c1ccccc1:c1ccccc1", (5, 6))] {
        let error = Molecule::from_smiles(text).unwrap_err();
        assert_eq!(error, MoleculeError::AromaticBond { a: bond.0, b: bond.1 });
    }
}

#[test]
fn double_bonds_are_placed_in_the_rings_that_are_aromatic() {
    let golden: Value = serde_json::from_str(include_str!("golden/fused_systems.json")).unwrap();
    let mut cases: Vec<[&str; 3]> = Vec::new();
    for case in golden["cases"].as_array().unwrap() {
        cases.push(["smiles", "canonical", "kekulized"].map(|key| case[key].as_str().unwrap()));
    }
    assert_eq!(cases.len(), 150);
    cases.push(["c1ccc2c(c1)c1ccccc12", "c1ccc2c(c1)-c1ccccc1-2", "C1=CC=C2C(=C1)C1=CC=CC=C21"]);
    let wrong: Vec<_> =
        cases.iter().filter(|texts| texts.iter().any(|t| read(t).key() != read(texts[0]).key())).collect();
    assert!(wrong.is_empty(), "{} of them: {wrong:?}", wrong.len());
    // No ring of this molecule is aromatic. The text can mean several molecules, and one of them is returned.
    assert_eq!(read("c1cc2cccc2c1").formula(), "C8H6");
}

#[test]
fn large_rings_with_hetero_atoms_are_aromatic_where_rdkit_has_them_so() {
    let golden: Value = serde_json::from_str(include_str!("golden/hetero_rings.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    let mut aromatic = 0;
    for case in cases {
        let [smiles, expected] = ["smiles", "aromatic"].map(|key| case[key].as_str().unwrap());
        let found: String =
            read(smiles).atoms().iter().map(|atom| if atom.aromatic { '1' } else { '0' }).collect();
        assert_eq!(found, expected, "{smiles}");
        aromatic += usize::from(expected.contains('1'));
    }
    assert!(cases.len() == 600 && aromatic > 30, "{aromatic}");
    // Of these rings of nine and eight atoms, oxonin and thionin aren't aromatic; azonine and dioxocin are.
    let aromatic = ["C1=CC=COC=CC=C1", "C1=CC=CSC=CC=C1", "C1=CC=CNC=CC=C1", "C1=COC=COC=C1"]
        .map(|s| read(s).n_aromatic_atoms());
    assert_eq!(aromatic, [0, 0, 9, 8]);
}

/// Returns the molecule with its atoms and bonds in a random order.
fn shuffled(molecule: &Molecule, rng: &mut Rng) -> Molecule {
    let n = molecule.atoms().len();
    let mut place: Vec<usize> = (0..n).collect();
    let mut bonds: Vec<_> = molecule.bonds().iter().collect();
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
    let bonds: Vec<_> = bonds.into_iter().map(|bond| (place[bond.b], place[bond.a], bond.order)).collect();
    Molecule::new(&ValenceTable::default(), &atoms, &bonds).unwrap()
}

/// Returns a sheet of six-membered rings. The atoms form `rows` rows and `columns` columns.
fn honeycomb(rows: usize, columns: usize) -> Molecule {
    // The sheet is built as a brick wall: each row is a chain, and every second atom is joined to the row
    // below.
    let mut pairs = Vec::new();
    let at = |i: usize, j: usize| i * columns + j;
    for i in 0..rows {
        for j in 0..columns {
            if j + 1 < columns {
                pairs.push((at(i, j), at(i, j + 1), j % 2 == 0));
            }
            if i + 1 < rows && (i + j) % 2 == 0 {
                pairs.push((at(i, j), at(i + 1, j), false));
            }
        }
    }
    let order = |double: bool| if double { BondOrder::Double } else { BondOrder::Single };
    let bonds: Vec<_> = pairs.into_iter().map(|(a, b, double)| (a, b, order(double))).collect();
    Molecule::new(&ValenceTable::default(), &vec![AtomSpec::from_element(Element::C); rows * columns], &bonds)
        .unwrap()
}

/// The time limit of a test. The limit is far above the usual time, and far below the time of a quadratic
/// algorithm.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn molecules_of_hundreds_of_atoms_are_read_and_written() {
    let mut rng = Rng::seeded(1);
    let mut tree = String::from("C");
    while tree.len() < 900 {
        tree = format!("C({tree})C({})O", "N".repeat(1 + rng.below(3)));
    }
    let long = [
        "C".repeat(1_000),
        format!("C1{}1", "C".repeat(999)),
        "C(c1ccccc1)C".repeat(60),
        "c1ccc(cc1)C(F)".repeat(60) + "Cl",
        "NC(C)C(=O)NC(Cc1ccccc1)C(=O)NCC(=O)".repeat(30) + "O",
        "C1CC2CCC1CC2".repeat(60),
        tree,
    ];
    for text in &long {
        let began = Instant::now();
        let molecule = read(text);
        let written = molecule.smiles();
        assert!(began.elapsed() < PATIENCE, "{:?} for {}...", began.elapsed(), &text[..30]);
        assert_eq!(read(&written).smiles(), written, "{}...", &text[..30]);
        let other = shuffled(&molecule, &mut rng);
        assert_eq!(other.smiles(), written, "{}...", &text[..30]);
        assert_eq!(other.formula(), molecule.formula());
    }
}

#[test]
fn aromatic_sheets_depend_on_no_order() {
    let mut rng = Rng::seeded(2);
    let sheet = honeycomb(20, 24);
    assert!(sheet.n_rings() > 200);
    let began = Instant::now();
    let written = sheet.smiles();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    let other = shuffled(&sheet, &mut rng);
    assert_eq!((other.n_aromatic_atoms(), other.smiles()), (sheet.n_aromatic_atoms(), written.clone()));
    assert_eq!(read(&written).smiles(), written);
}

#[test]
fn keys_of_large_molecules_are_those_of_the_same_molecule() {
    let mut rng = Rng::seeded(3);
    let arm = "c1cc(C)c(cc1)C(O)";
    let one = read(&(arm.repeat(30) + "N"));
    let other = read(&(arm.repeat(29) + "c1c(C)cc(cc1)C(O)N"));
    let symmetric = read(&format!("C({0}C)({0}C)({0}C){0}C", "C(C)(C)C(c1ccccc1)".repeat(6)));
    for molecule in [&one, &other, &symmetric] {
        let again = shuffled(molecule, &mut rng);
        assert!(molecule.atoms().len() > 200);
        assert!(again.key() == molecule.key());
        assert_eq!(again.automorphisms(), molecule.automorphisms());
    }
    assert!(one.key() != other.key() && one.formula() == other.formula());
    // The four arms can be permuted. Within each arm, six phenyl groups can be turned over, and the methyl
    // groups of six pairs can be exchanged.
    let expected = 24f64.ln() + 4.0 * 12.0 * 2f64.ln();
    assert!((symmetric.canonical().log_automorphisms - expected).abs() < 1e-9);
    assert_eq!(symmetric.automorphisms(), Some(24 << 48));
}

#[test]
fn a_megabyte_is_read_in_linear_time_or_refused() {
    for text in
        ["C".repeat(1 << 20), "c1ccccc1".repeat(1 << 17), "[13C]".repeat(1 << 17), "C(".repeat(1 << 19)]
    {
        let began = Instant::now();
        let error = Molecule::from_smiles(&text).unwrap_err();
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
        assert!(matches!(
            error,
            MoleculeError::TooLarge | MoleculeError::NotRead { what: NotRead::Isotope, .. }
        ));
    }
    let most = Molecule::MAX_ATOMS;
    assert_eq!(read(&"C".repeat(most)).atoms().len(), most);
    let atoms = vec![AtomSpec::from_element(Element::C); most + 1];
    assert_eq!(Molecule::new(&ValenceTable::default(), &atoms, &[]).unwrap_err(), MoleculeError::TooLarge);
    // This long text has brackets, rings and branches.
    let text = "[CH2+0](/[NH][C@@H:1]%(00012)[OH0]%(12))".repeat(200);
    let began = Instant::now();
    assert!(matches!(
        Molecule::from_smiles(&text),
        Err(MoleculeError::Bond { .. } | MoleculeError::Valence { .. })
    ));
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn forms_of_rings_in_a_row_are_counted() {
    // The Kekule forms of a chain of phenylenes are equal up to rotations of the rings about the axis of the
    // chain. Three methyl groups make the two forms of a ring different.
    let began = Instant::now();
    assert_eq!(read(&"c1ccc(cc1)".repeat(8)).n_kekule_forms(), Some(1));
    assert_eq!(read("c1cc(C)c(C)cc1C").n_kekule_forms(), Some(2));
    // Each tolyl group has two Kekule forms. If the two groups are equivalent, there are three pairs of
    // forms; if they aren't, there are four.
    assert_eq!(read("c1ccc(C)c(c1)CCc1ccccc1C").n_kekule_forms(), Some(3));
    assert_eq!(read("c1ccc(C)c(c1)CNc1ccccc1C").n_kekule_forms(), Some(4));
    // Eight inequivalent rings along a chain, with two Kekule forms each, give 2^8 forms. With more than
    // 65,536 forms the result is `None`.
    assert_eq!(read(&("C(c1ccccc1C)N".repeat(8) + "O")).n_kekule_forms(), Some(1 << 8));
    assert_eq!(read(&("C(c1ccccc1C)N".repeat(20) + "O")).n_kekule_forms(), None);
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    // An acene of 40 rings is a ladder with 41 rungs. In each Kekule form exactly one rung is a double bond.
    // The two ends are equivalent, so there are 21 forms.
    assert_eq!(read(&acene(40)).n_kekule_forms(), Some(21));
}

/// Returns the SMILES of a linear acene with this number of rings.
fn acene(rings: usize) -> String {
    let up: String = (3..=rings).map(|k| format!("cc%({k})")).collect();
    let down: String = (2..rings).rev().map(|k| format!("cc%({k})")).collect();
    format!("c1ccc2{up}ccccc%({rings}){down}c1")
}

#[test]
fn what_a_molecule_has_no_place_for_is_named() {
    for (text, expected) in [
        ("[Na+].[Cl-]", NotRead::Element),
        ("CC(=O)O.CN", NotRead::Parts),
        ("[13CH4]", NotRead::Isotope),
        ("[H][H]", NotRead::HydrogenAtom),
        ("[2H]C", NotRead::Isotope),
        ("C*", NotRead::UnknownAtom),
        ("[*]C", NotRead::UnknownAtom),
        ("[14*]C", NotRead::UnknownAtom),
        ("C$C", NotRead::QuadrupleBond),
        ("N->[Pt]", NotRead::DativeBond),
        ("c1cc[te]c1", NotRead::Element),
    ] {
        let error = Molecule::from_smiles(text).unwrap_err();
        assert!(matches!(error, MoleculeError::NotRead { what, .. } if what == expected), "{text}: {error}");
    }
    assert!(matches!(Molecule::from_smiles("[Xx]"), Err(MoleculeError::Syntax { .. })));
    // Parts of a text that are ignored without an error must be counted.
    let noted = |text: &str| Molecule::read_noting(&ValenceTable::default(), text).unwrap();
    let (alanine, left_out) = noted("C[C@@H]([NH3+:2])/C=C/[C@](F)(Cl)Br");
    assert_eq!((left_out.stereo, left_out.atom_maps, alanine.marks().len()), (0, 1, 3));
    assert_eq!(alanine.without_stereo().key(), noted("CC([NH3+])C=CC(F)(Cl)Br").0.key());
    // The stereo marks of these texts are meaningless and must be counted as ignored: a centre has two equal
    // neighbours, a double bond has a mark at one end only or lies in a ring of six, or there is no double
    // bond.
    for (text, marks) in
        [("C[C@H](C)F", 1), ("C/C=C(F)C", 1), ("C1CCC/C=C\\1", 2), ("C/C", 1), ("F[C@H2]Cl", 1)]
    {
        let (molecule, left_out) = noted(text);
        assert_eq!((left_out.stereo, molecule.marks().len()), (marks, 0), "{text}");
    }
    assert_eq!(noted("CC").1, Default::default());
}

#[test]
fn files_with_salts_are_read_without_them() {
    let path = std::env::temp_dir().join(format!("gfn-salts-{}.smi", std::process::id()));
    let lines = "smiles\tname\nCCO ethanol\n[Na+].[Cl-] salt\nC[C@H](N)O one\nC[C@@H](N)O \
        other\n\nC.C\nCC(=O)[O-].[K+] 1\nN.C\nO.C\n[CH3] radical\n[Fe]\n[13CH4]\nc1cccc1\nCC(C)(C)(C)C\n";
    std::fs::write(&path, lines).unwrap();
    // `read` must refuse the file as a whole, because some of its lines are invalid.
    let message = KnownMolecules::read(&path).unwrap_err().to_string();
    assert!(message.contains("line 3, \"[Na+].[Cl-]\": ") && message.contains("read_some"), "{message}");
    let (known, report) = KnownMolecules::read_some(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(known, [read("CCO"), read("CC(N)O")].iter().collect());
    // Stereochemistry isn't ignored while reading, but known molecules are compared without it.
    assert_eq!((report.read, report.without_stereo, report.n_skipped()), (3, 0, 10));
    let counts: Vec<_> = report.skipped.iter().map(|(reason, skipped)| (*reason, skipped.count)).collect();
    let expected = [
        (SkipReason::NotRead(NotRead::Parts), 4),
        (SkipReason::NotRead(NotRead::Element), 2),
        (SkipReason::NotRead(NotRead::Isotope), 1),
        (SkipReason::Radical, 1),
        (SkipReason::Valence, 1),
        (SkipReason::Aromaticity, 1),
    ];
    assert_eq!(counts, expected);
    let parts = &report.skipped[&SkipReason::NotRead(NotRead::Parts)].examples;
    let shown: Vec<_> = parts.iter().map(|line| (line.line, line.smiles.as_str())).collect();
    assert_eq!(shown, [(7, "C.C"), (8, "CC(=O)[O-].[K+]"), (9, "N.C")]);
    let text = report.to_string();
    assert!(text.starts_with("3 molecules read; 10 lines skipped; 4 with several parts"), "{text}");
    assert!(matches!(KnownMolecules::read_some(&path), Err(Error::Io { .. })));
    assert_eq!(ReadReport::default().n_skipped(), 0);
}
