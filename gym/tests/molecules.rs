//! Molecules as RDKit has them: read, written, weighed and counted; what isn't one is refused with the reason.

use gfn_gym::molecule::{Molecule, MoleculeError};
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
            wrong.push(format!("{smiles}: donors and acceptors {bonds:?}, not {} and {}", case["hbd"], case["hba"]));
        }
        // Molecules that were grown list their atoms in another order than the text.
        let mut atoms: Vec<_> = molecule
            .atoms()
            .iter()
            .map(|atom| {
                json!([atom.element.symbol(), atom.charge, atom.hydrogens, u8::from(atom.aromatic)]).to_string()
            })
            .collect();
        let listed = case["atoms"].as_array().unwrap().iter();
        let mut expected: Vec<_> = listed.map(|atom| json!([atom[0], atom[1], atom[3], atom[4]]).to_string()).collect();
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
        let (smiles, kind) = (text(case, "smiles"), text(case, "kind"));
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
}
