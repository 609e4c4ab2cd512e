//! Tests of spellings that other programs use: hydrogens as atoms, deuterium, and nitrogen with five bonds.
//! The expected results are those of RDKit 2026.09.1.

use gfn_molecules::fragments::Fragment;
use gfn_molecules::{
    Cleanup, Element, Molecule, MoleculeError, MoleculeFormat, MoleculeReader, NotRead, ValenceTable,
};
use serde_json::Value;

use super::molecule_files::record;

fn read(smiles: &str) -> Molecule {
    Molecule::from_smiles(smiles).unwrap_or_else(|error| panic!("{smiles}: {error}"))
}

const ISOTOPES_ONLY: Cleanup = Cleanup { largest_part: false, without_isotopes: true, neutral: false };

#[test]
fn hydrogens_that_are_written_as_atoms_are_counted_on_their_neighbours() {
    let golden: Value = serde_json::from_str(include_str!("golden/explicit_hydrogens.json")).unwrap();
    let mut texts = 0;
    let mut wrong = Vec::new();
    for case in golden["cases"].as_array().unwrap() {
        let molecule = read(case["smiles"].as_str().unwrap());
        for text in case["texts"].as_array().unwrap() {
            let text = text.as_str().unwrap();
            texts += 1;
            match Molecule::read_noting(&ValenceTable::default(), text) {
                Ok((found, left_out)) if found.key() == molecule.key() && left_out.stereo == 0 => {}
                other => wrong.push((text, other)),
            }
        }
    }
    assert!(texts > 200, "{texts}");
    assert!(wrong.is_empty(), "{} of {texts}: {:?}", wrong.len(), wrong.first());
}

/// Tests that isotopes are refused without cleanup. With cleanup, deuterium is read as hydrogen, whatever the
/// number and the positions of the deuterium atoms.
#[test]
fn deuterium_is_a_hydrogen_under_cleanup() {
    let golden: Value = serde_json::from_str(include_str!("golden/explicit_hydrogens.json")).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let molecule = read(case["smiles"].as_str().unwrap());
        for text in case["texts"].as_array().unwrap() {
            let text = text.as_str().unwrap();
            for (heavy, count) in [
                (text.replacen("[H]", "[2H]", 1), 1),
                (text.replace("[H]", "[2H]"), text.matches("[H]").count()),
            ] {
                let cleaned = ISOTOPES_ONLY.read(&heavy).unwrap_or_else(|error| panic!("{heavy}: {error}"));
                assert_eq!(cleaned.molecule.key(), molecule.key(), "{heavy}");
                assert_eq!(cleaned.isotopes, count, "{heavy}");
                let error = Molecule::from_smiles(&heavy).unwrap_err();
                assert!(
                    matches!(error, MoleculeError::NotRead { what: NotRead::Isotope, .. }),
                    "{heavy}: {error}"
                );
            }
        }
    }
    let cleaned = Cleanup::ALL.read("[2H]C([2H])([2H])Oc1ccccc1.[2H]Cl.[3H]O[2H]").unwrap();
    assert_eq!((cleaned.molecule.key(), cleaned.parts, cleaned.isotopes), (read("COc1ccccc1").key(), 2, 6));
}

#[test]
fn hydrogens_keep_stereochemistry_brackets_maps_and_the_valence_that_they_ask_for() {
    for (text, same) in [
        ("[H][C@](F)(Cl)Br", "F[C@@H](Cl)Br"),
        ("[H][C@@](F)(Cl)Br", "F[C@H](Cl)Br"),
        ("F[C@]([H])(Cl)Br", "F[C@H](Cl)Br"),
        ("F[C@](Cl)([H])Br", "F[C@@H](Cl)Br"),
        ("F[C@](Cl)(Br)[H]", "F[C@H](Cl)Br"),
        ("[C@]([H])(F)(Cl)Br", "F[C@@H](Cl)Br"),
        ("[C@](F)([H])(Cl)Br", "F[C@H](Cl)Br"),
        ("[H][C@]1(F)CCO1", "F[C@H]1CCO1"),
        ("F[C@]1([H])CCO1", "F[C@@H]1CCO1"),
        ("[C@]1([H])(F)CCO1", "F[C@@H]1CCO1"),
        // The stereocentre may be an atom with a lone pair, too.
        ("C[P@]([H])Cl", "C[P@@H]Cl"),
        ("C[P@@]([H])Cl", "C[P@H]Cl"),
        ("[H][P@](C)Cl", "C[P@H]Cl"),
        ("C[N@+]([H])(CC)CCC", "CCC[N@H+](C)CC"),
        // The directions of bonds to hydrogens determine the configuration of the double bond.
        ("[H]/C(F)=C/F", "F/C=C\\F"),
        ("[H]/C(F)=C(/[H])F", "F/C=C/F"),
        ("[H]\\C(F)=C(/[H])F", "F/C=C\\F"),
        ("C(/[H])(F)=C/F", "F/C=C/F"),
        ("F/C(/[H])=C/F", "F/C=C/F"),
        ("[H]/C(C)=N/O", "C/C=N\\O"),
        ("[H]/C([H])=C/F", "C=CF"),
        // These stereo marks are meaningless and are dropped: a centre with two hydrogens, and a hydrogen at
        // the nitrogen of an imine.
        ("[H][C@H](F)Cl", "FCCl"),
        ("[H]/N=C/F", "N=CF"),
        ("[H]-C", "C"),
        ("C-[H]", "C"),
        ("[CH3][H]", "C"),
        ("[H:1]C", "C"),
        ("C[H:2]", "C"),
        ("[H]S([H])([H])C", "C[SH3]"),
        ("[H]S(=O)C", "C[SH]=O"),
        ("[H]P([H])([H])([H])C", "C[PH4]"),
        ("[H]I([H])C", "C[IH2]"),
        ("[H][N+]([H])([H])[H]", "[NH4+]"),
        ("[H]n1cccc1", "c1cc[nH]c1"),
        ("[H]c1c([H])c([H])c([H])c([H])c1[H]", "c1ccccc1"),
    ] {
        let found = read(text);
        assert_eq!(found.key(), read(same).key(), "{text}: {}", found.smiles());
    }
    let left_out = |text: &str| Molecule::read_noting(&ValenceTable::default(), text).unwrap().1;
    assert_eq!((left_out("[H]/C(F)=C/F").stereo, left_out("[H]/N=C/F").stereo), (0, 2));
    assert_eq!((left_out("[H][C@H](F)Cl").stereo, left_out("[H:3]C").atom_maps), (1, 1));
    assert!(matches!(Molecule::from_smiles("[H]/C(\\F)=C/F"), Err(MoleculeError::Stereo { .. })));
    assert!(matches!(Molecule::from_smiles("[H]o1cccc1"), Err(MoleculeError::Valence { .. })));
    assert!(matches!(Molecule::from_smiles("[H]C([H])([H])([H])[H]"), Err(MoleculeError::Valence { .. })));
}

#[test]
fn a_hydrogen_without_one_heavy_neighbour_is_refused_by_name() {
    for text in
        ["[H]", "[H+]", "[H-]", "[HH]", "[H][H]", "C[H]C", "[H]=C", "C=[H]", "[H]B1[H]B([H])[H]1", "C[H+]"]
    {
        let error = Molecule::from_smiles(text).unwrap_err();
        assert!(
            matches!(error, MoleculeError::NotRead { what: NotRead::HydrogenAtom, .. }),
            "{text}: {error}"
        );
        assert!(error.to_string().contains("a hydrogen without exactly one heavy neighbour"), "{error}");
    }
    for text in ["[H]-", "[H:1", "[H]1CC1", "C([H]"] {
        assert!(matches!(Molecule::from_smiles(text), Err(MoleculeError::Syntax { .. })), "{text}");
    }
    // Hydrogens that are separate parts of the text are removed like salts.
    for text in ["[H+].CC(=O)[O-]", "[H][H].CC(=O)O", "[2H+].CC(=O)[O-]"] {
        assert_eq!(Cleanup::ALL.read(text).unwrap().molecule.key(), read("CC(=O)O").key(), "{text}");
    }
    // Hydrogens written as atoms must not count for the limit on the number of atoms.
    let most = Molecule::MAX_ATOMS;
    let text = format!("{}[H]", "C([H])([H])".repeat(most));
    assert_eq!(read(&text).atoms().len(), most);
    let larger = format!("C{text}");
    assert_eq!(Molecule::from_smiles(&larger).unwrap_err(), MoleculeError::TooLarge);
}

/// Pairs of spellings of nitro groups, N-oxides, azides, diazo compounds, nitrones, nitrile oxides and nitric
/// acid. The first spelling has a neutral nitrogen with five bonds, the second has charges.
const NITROGEN: [(&str, &str); 31] = [
    ("CN(=O)=O", "C[N+](=O)[O-]"),
    ("N(=O)(=O)C", "C[N+](=O)[O-]"),
    ("O=N(C)=O", "C[N+](=O)[O-]"),
    ("C[N](=O)=O", "C[N+](=O)[O-]"),
    ("O=N(=O)c1ccc(N(=O)=O)cc1", "O=[N+]([O-])c1ccc([N+](=O)[O-])cc1"),
    ("NN(=O)=O", "N[N+](=O)[O-]"),
    ("ON(=O)=O", "O=[N+]([O-])O"),
    ("[O-]N(=O)=O", "O=[N+]([O-])[O-]"),
    ("O=N(=O)ON(=O)=O", "O=[N+]([O-])O[N+](=O)[O-]"),
    ("CN(=S)=O", "C[N+]([O-])=S"),
    ("CN(=N)=O", "C[N+](=N)[O-]"),
    ("CN=N#N", "CN=[N+]=[N-]"),
    ("N#N=NC", "CN=[N+]=[N-]"),
    ("c1ccccc1N=N#N", "[N-]=[N+]=Nc1ccccc1"),
    ("[N-]=N#N", "[N-]=[N+]=[N-]"),
    ("C=N#N", "C=[N+]=[N-]"),
    ("N#N=CC(=O)C", "CC(=O)C=[N+]=[N-]"),
    ("O=n1ccccc1", "[O-][n+]1ccccc1"),
    ("O=N1=CC=CC=C1", "[O-][n+]1ccccc1"),
    ("C:1:C:C:C:C:N1=O", "[O-][n+]1ccccc1"),
    ("O=n1onc2ccccc21", "[O-][n+]1onc2ccccc21"),
    ("c1ccc2c(c1)n(=O)c1ccccc1n2=O", "[O-][n+]1c2ccccc2[n+]([O-])c2ccccc21"),
    ("CN(C)(C)=O", "C[N+](C)(C)[O-]"),
    ("FN(F)(F)=O", "[O-][N+](F)(F)F"),
    ("C[NH2]=O", "C[NH2+][O-]"),
    ("[H][N]([H])([H])=O", "[NH3+][O-]"),
    ("O=[NH]1CCCC1", "[O-][NH+]1CCCC1"),
    ("CC#N=O", "CC#[N+][O-]"),
    ("C=N(C)=O", "C=[N+](C)[O-]"),
    ("C/C=N(/C)=O", "C/C=[N+](/C)[O-]"),
    ("CC=N(=O)O", "CC=[N+]([O-])O"),
];

#[test]
fn nitrogen_of_five_bonds_gets_charges() {
    for (text, same) in NITROGEN {
        let found = read(text);
        assert_eq!(found.key(), read(same).key(), "{text}: {}", found.smiles());
    }
    for text in [
        "CN(C)(C)(C)C",
        "CN(=S)=S",
        "CN#N",
        "Cn1(=O)cccc1",
        "C[N+](=O)=O",
        "CN(=C)=C",
        "CN(=NC)=NC",
        "CN(C)=C",
    ] {
        assert!(matches!(Molecule::from_smiles(text), Err(MoleculeError::Valence { .. })), "{text}");
    }
    // If the table allows nitrogen the valence 5, the neutral nitrogen must be kept.
    let table = ValenceTable::default().with(Element::N, 0, &[3, 5]);
    for text in ["CN(=O)=O", "O=n1ccccc1"] {
        assert!(Molecule::read(&table, text).unwrap().atoms().iter().all(|atom| atom.charge == 0), "{text}");
    }
}

fn of_record(text: &str) -> Molecule {
    let mut reader = MoleculeReader::new(text.as_bytes(), MoleculeFormat::Sd).with_cleanup(ISOTOPES_ONLY);
    reader.next().unwrap().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn sd_files_have_the_same_spellings() {
    let ring = ["  1  2  4", "  2  3  4", "  3  4  4", "  4  5  4", "  5  6  4", "  6  1  4"];
    let water = ["  1  2  1", "  1  3  1"];
    for (atoms, bonds, same) in [
        (vec!["C", "N", "O", "O"], vec!["  1  2  1", "  2  3  2", "  2  4  2"], "C[N+](=O)[O-]"),
        (vec!["C", "N", "N", "N"], vec!["  1  2  1", "  2  3  2", "  3  4  3"], "CN=[N+]=[N-]"),
        (vec!["N", "C", "C", "C", "C", "C", "O"], [&ring[..], &["  1  7  2"]].concat(), "[O-][n+]1ccccc1"),
        (
            vec!["N", "H", "H", "H", "O"],
            vec!["  1  2  1", "  1  3  1", "  1  4  1", "  1  5  2"],
            "[NH3+][O-]",
        ),
        (vec!["C", "D", "O"], water.to_vec(), "CO"),
        (vec!["O", "T", "H"], water.to_vec(), "O"),
        (vec!["D", "H", "O"], vec!["  3  1  1", "  2  3  1"], "O"),
        (vec!["H", "C", "H", "N"], vec!["  1  2  1", "  3  2  1", "  2  4  2"], "C=N"),
        (
            vec!["H", "N", "C", "C", "C", "C"],
            vec!["  1  2  1", "  2  3  4", "  3  4  4", "  4  5  4", "  5  6  4", "  6  2  4"],
            "c1cc[nH]c1",
        ),
        (
            vec!["C", "C", "C", "C", "C", "O"],
            vec!["  1  2  1", "  2  3  1", "  3  4  1", "  4  1  1", "  1  3  1", "  4  5  1", "  5  6  2"],
            "O=CC1C2CC12",
        ),
    ] {
        let atoms: Vec<String> = atoms.iter().map(|symbol| format!("{symbol:<3}")).collect();
        let atoms: Vec<&str> = atoms.iter().map(String::as_str).collect();
        let found = of_record(&record(&atoms, &bonds, &[]));
        assert_eq!(found.key(), read(same).key(), "{same}: {}", found.smiles());
    }
    // In SD files deuterium is written with a mass difference of 1, or with its mass in a line `M  ISO`.
    let deuterated = [
        record(&["H   1", "O  "], &["  1  2  1"], &[]),
        record(&["O  ", "H  "], &["  1  2  1"], &["M  ISO  1   2   2"]),
    ];
    for text in &deuterated {
        assert_eq!(of_record(text).key(), read("O").key(), "{text}");
    }
}

#[test]
fn labels_of_brics_pieces_mark_attachments() {
    let same = |one: &str, other: &str| {
        let [one, other] = [one, other].map(|text| Fragment::from_marked(text).unwrap());
        one.is_same(&other)
    };
    assert!(same("[14*]c1nnc(N)o1", "[*:14]c1nnc(N)o1"));
    assert!(same("[1*]c1ccc([16*])cc1", "*c1ccc([*:2])cc1") && same("[4*:1]CC", "[*]CC"));
    // Hydrogens written as atoms must not change which atoms are stems (attachment points).
    assert!(same("[H]N([14*])C([H])([H])[1*]", "*NC*") && same("[H:7]C([*:1])([H])O", "*CO"));
    let error = Molecule::from_smiles("[14*]CC").unwrap_err();
    assert!(matches!(error, MoleculeError::NotRead { what: NotRead::UnknownAtom, .. }), "{error}");
    assert!(Fragment::from_marked("[14C]C*").is_err() && Fragment::from_marked("[x*]C").is_err());
}
