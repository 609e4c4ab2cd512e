//! Tests that compare molecules with RDKit's: SMILES that are read and written, weights and counts. Invalid
//! SMILES must be refused with the reason.

use std::collections::BTreeSet;

use gfn::Error;
use gfn_molecules::{
    Fingerprint, KnownMolecules, Molecule, MoleculeError, diverse_top_k, internal_diversity, n_modes,
    uniqueness,
};
use serde_json::{Value, json};

fn cases(valid: bool) -> Vec<Value> {
    let golden: Value = serde_json::from_str(include_str!("golden/molecules.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap().clone();
    cases.into_iter().filter(|case| case["valid"] == valid).collect()
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap()
}

#[test]
fn valid_molecules_go_round() {
    let cases = cases(true);
    assert_eq!(cases.len(), 200);
    let mut wrong = Vec::new();
    for case in &cases {
        let smiles = text(case, "smiles");
        let molecule = Molecule::from_smiles(smiles).unwrap();
        assert_eq!(molecule.formula(), text(case, "formula"), "{smiles}");
        assert!((molecule.weight() - case["mol_weight"].as_f64().unwrap()).abs() < 1e-3, "{smiles}");
        assert_eq!(molecule.n_rings() as u64, case["cyclomatic"].as_u64().unwrap(), "{smiles}");
        assert_eq!(molecule.automorphisms(), case["aut"].as_u64(), "{smiles}");
        assert!((molecule.polar_surface() - case["tpsa"].as_f64().unwrap()).abs() < 1e-6, "{smiles}");
        let bonds = [molecule.n_donors() as u64, molecule.n_acceptors() as u64];
        if bonds != [case["hbd"].as_u64().unwrap(), case["hba"].as_u64().unwrap()] {
            wrong.push(format!(
                "{smiles}: donors and acceptors {bonds:?}, not {} and {}",
                case["hbd"], case["hba"]
            ));
        }
        // The atoms are compared in sorted order, because a molecule's atoms needn't be in the order of the
        // golden file.
        let mut atoms: Vec<_> = molecule
            .atoms()
            .iter()
            .map(|atom| {
                json!([atom.element.symbol(), atom.charge, atom.hydrogens, u8::from(atom.aromatic)])
                    .to_string()
            })
            .collect();
        let listed = case["atoms"].as_array().unwrap().iter();
        let mut expected: Vec<_> =
            listed.map(|atom| json!([atom[0], atom[1], atom[3], atom[4]]).to_string()).collect();
        atoms.sort_unstable();
        expected.sort_unstable();
        assert_eq!(atoms, expected, "{smiles}");
        let forms = molecule.kekule_forms().unwrap();
        assert_eq!(forms.len(), molecule.n_kekule_forms().unwrap());
        let mut texts = vec![
            molecule.smiles(),
            molecule.kekule_smiles(),
            text(case, "canonical").into(),
            text(case, "kekulized").into(),
        ];
        texts.extend(forms.iter().map(Molecule::kekule_smiles));
        for text in texts {
            let again = Molecule::from_smiles(&text).unwrap();
            assert_eq!(again.key(), molecule.key(), "{smiles} {text}");
            assert_eq!(again.smiles(), molecule.smiles(), "{smiles} {text}");
            assert_eq!(again.n_kekule_forms(), molecule.n_kekule_forms(), "{smiles} {text}");
        }
    }
    let mut keys: Vec<_> =
        cases.iter().map(|case| Molecule::from_smiles(text(case, "smiles")).unwrap().key()).collect();
    let mut names: Vec<_> = cases.iter().map(|case| text(case, "canonical")).collect();
    names.sort_unstable();
    names.dedup();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), names.len());
}

#[test]
fn invalid_molecules_are_refused_with_the_reason() {
    let cases = cases(false);
    assert_eq!(cases.len(), 60);
    for case in &cases {
        let smiles = text(case, "smiles");
        let kind = text(case, "kind");
        let error = Molecule::from_smiles(smiles).unwrap_err();
        match (kind, &error) {
            ("valence", MoleculeError::Valence { atom, .. }) => {
                assert_eq!(*atom as u64, case["atom"].as_u64().unwrap(), "{smiles}");
            }
            ("kekulize", MoleculeError::NotInRing { atom }) => {
                assert_eq!(*atom as u64, case["atom"].as_u64().unwrap(), "{smiles}");
            }
            ("kekulize", MoleculeError::Kekulise { atoms }) => assert!(!atoms.is_empty()),
            ("parse", MoleculeError::Syntax { .. }) => {}
            _ => panic!("{smiles}: {kind}, but {error}"),
        }
    }
    // These texts have more charge signs than a byte can count.
    for smiles in
        ["[C++++++++++]".into(), format!("[C{}]", "+".repeat(260)), format!("[C{}]", "-".repeat(257))]
    {
        let error = Molecule::from_smiles(&smiles).unwrap_err();
        assert!(matches!(error, MoleculeError::Syntax { .. }), "{error}");
    }
}

/// Returns the molecules in the golden file of similarities, and the parsed file.
fn similarity() -> (Vec<Molecule>, Value) {
    let golden: Value = serde_json::from_str(include_str!("golden/molecule_similarity.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    let molecules = cases.iter().map(|case| Molecule::from_smiles(text(case, "smiles")).unwrap()).collect();
    (molecules, golden)
}

#[test]
fn environments_are_shared_as_in_rdkit() {
    let (molecules, golden) = similarity();
    let sets: Vec<BTreeSet<u64>> =
        molecules.iter().map(|m| m.environments(2).into_iter().collect()).collect();
    for (set, case) in sets.iter().zip(golden["cases"].as_array().unwrap()) {
        assert_eq!(set.len() as u64, case["environments"].as_u64().unwrap(), "{case}");
    }
    let mut alike = 0;
    let mut unfolded = 0;
    for pair in golden["pairs"].as_array().unwrap() {
        let [i, j, shared, together] = [0, 1, 2, 3].map(|k| pair[k].as_u64().unwrap() as usize);
        let found = (sets[i].intersection(&sets[j]).count(), sets[i].union(&sets[j]).count());
        assert_eq!(found, (shared, together), "{} {}", molecules[i].smiles(), molecules[j].smiles());
        // A fingerprint sets a bit for each atom environment (the atoms and bonds near an atom). Sometimes
        // two atom environments set the same bit, so that the similarity is slightly off.
        let tanimoto =
            Fingerprint::from_molecule(&molecules[i]).tanimoto(&Fingerprint::from_molecule(&molecules[j]));
        let off = (tanimoto - shared as f64 / together as f64).abs();
        assert!(off <= 4.0 / together as f64, "{tanimoto}: {shared} of {together}");
        unfolded += usize::from(shared > 0 && off < 1e-12);
        alike += usize::from(5 * shared > together);
    }
    assert!(alike > 40, "{alike} pairs share more than a fifth");
    // For many pairs that share atom environments, the similarity of the two fingerprints must be exactly the
    // Tanimoto similarity of the two sets of atom environments. Another measure, such as Dice's, would differ
    // from it for all these pairs.
    assert!(unfolded > 100, "{unfolded} pairs that share some are as alike as their environments");
    // The number of atom environments must grow with their radius. Few of them may share a bit of the
    // fingerprint.
    for (molecule, set) in molecules.iter().zip(&sets) {
        let smaller = molecule.environments(1).len();
        let larger = molecule.environments(3).len();
        assert!(
            molecule.bonds().is_empty() || smaller < set.len() && set.len() < larger,
            "{}",
            molecule.smiles()
        );
        let fingerprint = Fingerprint::from_molecule(molecule);
        assert!(
            (set.len().saturating_sub(2)..=set.len()).contains(&(fingerprint.count() as usize)),
            "{}",
            molecule.smiles()
        );
        assert_eq!(fingerprint, Fingerprint::with_radius(molecule, 2));
    }
}

#[test]
fn scaffolds_are_those_of_rdkit() {
    let (molecules, golden) = similarity();
    let mut with_ring = 0;
    for (molecule, case) in molecules.iter().zip(golden["cases"].as_array().unwrap()) {
        let expected = Some(text(case, "scaffold")).filter(|s| !s.is_empty());
        let expected = expected.map(|smiles| Molecule::from_smiles(smiles).unwrap().smiles());
        let scaffold = molecule.scaffold();
        assert_eq!(scaffold.as_ref().map(Molecule::smiles), expected, "{case}");
        // The scaffold of a scaffold must be the scaffold itself.
        if let Some(scaffold) = scaffold {
            assert_eq!(scaffold.scaffold().unwrap().key(), scaffold.key(), "{case}");
            with_ring += 1;
        }
    }
    assert!(with_ring > 100);
    // A custom table allows nitrogen a valence that the default table doesn't allow.
    let table = gfn_molecules::ValenceTable::default().with(gfn_molecules::Element::N, 0, &[3, 5]);
    let nitro = Molecule::read(&table, "C1CCCN1(=O)C").unwrap();
    assert_eq!(nitro.scaffold().unwrap().formula(), "C4H9NO");
}

#[test]
fn sets_of_molecules_are_measured_as_by_hand() {
    let (molecules, _) = similarity();
    let fingerprints: Vec<Fingerprint> = molecules.iter().map(Fingerprint::from_molecule).collect();
    let n = fingerprints.len();
    // The expected diversity is a mean over all ordered pairs of different molecules.
    let mean: f64 = (0..n)
        .flat_map(|i| (0..n).filter(move |j| *j != i).map(move |j| (i, j)))
        .map(|(i, j)| fingerprints[i].tanimoto(&fingerprints[j]))
        .sum::<f64>()
        / (n * (n - 1)) as f64;
    assert!((internal_diversity(&fingerprints).unwrap() - (1.0 - mean)).abs() < 1e-12);
    assert_eq!(internal_diversity(&[fingerprints[3].clone(), fingerprints[3].clone()]).unwrap(), 0.0);

    let scores: Vec<f64> = (0..n).map(|i| (i * 37 % n) as f64).collect();
    let taken = diverse_top_k(&scores, &fingerprints, n, 0.35).unwrap();
    assert!(taken.len() < n && taken.windows(2).all(|pair| scores[pair[0]] > scores[pair[1]]));
    for i in 0..n {
        let better = |j: &&usize| scores[**j] > scores[i];
        let near = taken.iter().filter(better).any(|&j| fingerprints[i].tanimoto(&fingerprints[j]) >= 0.35);
        assert_eq!(taken.contains(&i), !near);
    }
    assert_eq!(diverse_top_k(&scores, &fingerprints, 5, 0.35).unwrap(), taken[..5]);
    let at_least = |least: f64| taken.iter().filter(|&&i| scores[i] >= least).count();
    for least in [0.0, 50.0, 200.0, 1e9] {
        assert_eq!(n_modes(&scores, &fingerprints, least, 0.35).unwrap(), at_least(least));
    }

    let distinct: BTreeSet<String> = molecules.iter().map(Molecule::smiles).collect();
    assert_eq!(uniqueness(&molecules).unwrap(), distinct.len() as f64 / n as f64);
    assert!(matches!(uniqueness(&[]), Err(Error::Config { .. })));
}

#[test]
fn known_molecules_come_from_a_file() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../molecules/tests/golden/molecules_cno_4.smi");
    let known = KnownMolecules::read(file).unwrap();
    assert_eq!(known.len(), 571);
    let of = |smiles: &str| Molecule::from_smiles(smiles).unwrap();
    // Two of the four samples are the same molecule, so there are three distinct molecules. The file contains
    // one of these, so two of the three are novel.
    let sampled = [of("CCO"), of("CCCCC"), of("CS"), of("OCC")];
    assert_eq!(known.novelty(&sampled).unwrap(), 2.0 / 3.0);
    assert!(known.contains(&of("OCC")) && !known.contains(&of("CS")));
    assert!(matches!(known.novelty(&[]), Err(Error::Config { .. })));
    let path = std::env::temp_dir().join(format!("gfn-known-{}.smi", std::process::id()));
    std::fs::write(&path, "CCO ethanol\n\nC,1.5\nc1ccc\n").unwrap();
    let message = KnownMolecules::read(&path).unwrap_err().to_string();
    assert!(message.contains("line 4, \"c1ccc\": "), "{message}");
    std::fs::write(&path, "CCO ethanol\n\nC,1.5\n").unwrap();
    assert_eq!(KnownMolecules::read(&path).unwrap(), [of("C"), of("OCC")].iter().collect());
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(KnownMolecules::read(&path), Err(Error::Io { .. })));
}

#[test]
fn sets_that_cannot_be_compared_are_refused() {
    let one = [Fingerprint::from_molecule(&Molecule::from_smiles("CCO").unwrap())];
    assert!(matches!(internal_diversity(&one), Err(Error::Config { .. })));
    assert!(matches!(diverse_top_k(&[1.0, 2.0], &one, 1, 0.7), Err(Error::Shape { .. })));
    assert!(matches!(diverse_top_k(&[f64::NAN], &one, 1, 0.7), Err(Error::NonFinite { row: 0, .. })));
    for similarity in [0.0, 1.1, f64::NAN] {
        assert!(matches!(n_modes(&[1.0], &one, 0.0, similarity), Err(Error::Config { .. })));
    }
    assert!(diverse_top_k(&[], &[], 5, 0.7).unwrap().is_empty());
}
