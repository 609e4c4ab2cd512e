//! Tests that compare descriptors and substructures with RDKit's, and tests of invalid SMARTS.

use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use gfn::{Error, Rng};
use gfn_molecules::{
    AccessibilityTable, Factor, Molecule, MoleculeScore, PatternError, Patterns, Property, ScoreConfig, Shape,
};
use serde_json::{Value, json};
use serde_pickle::SerOptions;

fn golden(name: &str) -> Vec<Value> {
    let path = format!("{}/../molecules/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["cases"].as_array().unwrap().clone()
}

fn valid() -> Vec<(Molecule, Value)> {
    let cases = golden("molecules.json").into_iter().filter(|case| case["valid"] == true);
    cases.map(|case| (Molecule::from_smiles(case["smiles"].as_str().unwrap()).unwrap(), case)).collect()
}

#[test]
fn descriptors_are_those_of_rdkit() {
    let table = format!("{}/../molecules/tests/golden/sa_table.txt", env!("CARGO_MANIFEST_DIR"));
    let properties = [
        (Property::Qed, "qed"),
        (Property::LogP, "logp"),
        (Property::MolarRefractivity, "mr"),
        (Property::RotatableBonds, "rotatable"),
        (Property::PolarSurface, "tpsa"),
        (Property::Weight, "mol_weight"),
        (Property::Donors, "hbd"),
        (Property::Acceptors, "hba"),
        (Property::SyntheticAccessibility { table: table.into() }, "sa_score"),
    ];
    let cases = valid();
    let molecules: Vec<Molecule> = cases.iter().map(|(molecule, _)| molecule.clone()).collect();
    let score = ScoreConfig {
        factors: properties.iter().map(|(property, _)| Factor::from_property(property.clone())).collect(),
    };
    let rows = score.build().unwrap().properties(&molecules).unwrap();
    for ((_, case), row) in cases.iter().zip(&rows) {
        for ((property, name), value) in properties.iter().zip(row) {
            let theirs = case[name].as_f64().unwrap();
            assert!(
                (value - theirs).abs() < 1e-3,
                "{} of {}: {value}, RDKit has {theirs}",
                property.name(),
                case["smiles"]
            );
        }
    }
    assert_eq!(molecules[0].qed(), rows[0][0]);
    assert_eq!(molecules[0].log_p(), rows[0][1]);
}

#[test]
fn substructures_are_those_of_rdkit() {
    let molecules = valid();
    let cases = golden("substructures.json");
    assert!(cases.len() > 20 && molecules.len() == 200);
    for case in cases {
        let smarts = case["smarts"].as_str().unwrap();
        let pattern = Patterns::new([("it", smarts)]).unwrap();
        let found = (0..molecules.len()).filter(|&k| !pattern.found_in(&molecules[k].0).unwrap().is_empty());
        let theirs: Vec<usize> =
            case["found_in"].as_array().unwrap().iter().map(|k| k.as_u64().unwrap() as usize).collect();
        assert_eq!(found.collect::<Vec<_>>(), theirs, "{smarts}");
    }
}

/// Tests that descriptors depend neither on the Kekule form nor on the spelling of a molecule.
#[test]
fn all_kekule_forms_have_the_same_numbers() {
    let forms =
        ["CC1=CC=CC=C1O", "CC1=C(O)C=CC=C1", "Oc1ccccc1C"].map(|text| Molecule::from_smiles(text).unwrap());
    let pattern = Patterns::new([("ortho", "[CH3]c:c[OH]")]).unwrap();
    for form in &forms {
        // Sums are compared up to rounding, because their last digits depend on the order of the atoms.
        assert!((form.qed() - forms[0].qed()).abs() + (form.log_p() - forms[0].log_p()).abs() < 1e-12);
        assert_eq!(pattern.found_in(form).unwrap(), ["ortho"]);
    }
}

#[test]
fn lipinski_counts_what_is_beyond() {
    let of = |text: &str| Molecule::from_smiles(text).unwrap().n_lipinski_violations();
    assert_eq!(of("CCO"), 0);
    // A paraffin of 40 carbons breaks two of Lipinski's rules: those on weight and on log P.
    assert_eq!(of(&"C".repeat(40)), 2);
    // Sucrose breaks two of Lipinski's rules: it has 8 hydrogen-bond donors and 11 acceptors.
    assert_eq!(of("OCC1OC(OC2(CO)OC(CO)C(O)C2O)C(O)C(O)C1O"), 2);
}

#[test]
fn filters_are_factors_or_restrictions() {
    let molecules = ["CCOOC", "CCO"].map(|text| Molecule::from_smiles(text).unwrap());
    let of = |otherwise| {
        let peroxides =
            Property::Substructures { smarts: vec!["[#8][#8]".into(), "[OH]".into()], file: None };
        let shape = Shape::Limit { least: None, most: Some(1.0), otherwise };
        let score = ScoreConfig { factors: vec![Factor { shape, ..Factor::from_property(peroxides) }] }
            .build()
            .unwrap();
        (score.properties(&molecules).unwrap(), score.log_scores(&molecules).unwrap())
    };
    assert_eq!(of(0.0), (vec![vec![1.0], vec![1.0]], vec![0.0, 0.0]));
    let strict = Property::Substructures { smarts: vec!["[#8][#8]".into()], file: None };
    for (otherwise, log) in [(0.0, f64::NEG_INFINITY), (0.1, 0.1f64.ln())] {
        let shape = Shape::Limit { least: None, most: Some(0.0), otherwise };
        let score = ScoreConfig { factors: vec![Factor { shape, ..Factor::from_property(strict.clone()) }] }
            .build()
            .unwrap();
        assert_eq!(score.log_scores(&molecules).unwrap(), [log, 0.0]);
    }
    // The log P of water is below 0 and can't be a score. The error must therefore ask for a shape, which
    // maps log P to a number of at least 0.
    let score = ScoreConfig { factors: vec![Factor::from_property(Property::LogP)] }.build().unwrap();
    let error = score.log_scores(&[Molecule::from_smiles("O").unwrap()]).unwrap_err();
    assert!(error.to_string().contains("log_p") && error.to_string().contains("shape"), "{error}");
}

#[test]
fn files_are_read_or_refused_by_line() {
    let folder = std::env::temp_dir().join(format!("gfn-patterns-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let patterns =
        Patterns::read(put("good", "# alerts\n\n[OH] alcohol\n\"C=O\",\"<carbonyl>\"\nC#C\n")).unwrap();
    let found = |text: &str| patterns.found_in(&Molecule::from_smiles(text).unwrap()).unwrap().join(" ");
    assert_eq!(
        (patterns.len(), found("OC=O").as_str(), found("C#C").as_str()),
        (3, "alcohol <carbonyl>", "C#C")
    );
    for (text, said) in [("[OH]\n[O", "line 2"), ("", "no patterns"), ("# none\n", "no patterns")] {
        let error = Patterns::read(put("bad", text)).unwrap_err();
        assert!(matches!(error, Error::File { .. }) && error.to_string().contains(said), "{error}");
    }
    assert!(matches!(Patterns::read(folder.join("none")), Err(Error::Io { .. })));
    let table = AccessibilityTable::read(put("table", "-1.5 12 13\n0.25 14\n\n")).unwrap();
    assert!(table.len() == 3 && !table.is_empty());
    for text in ["", "one 2", "1.0 -2", "NaN 3", "1.0 4294967296"] {
        assert!(matches!(AccessibilityTable::read(put("bad", text)), Err(Error::File { .. })), "{text}");
    }
    // The file that RDKit distributes is a gzipped pickle of lists. This closure writes such a file.
    let zipped = |name: &str, value: &Value| {
        let path = folder.join(name);
        let mut file = GzEncoder::new(std::fs::File::create(&path).unwrap(), Compression::fast());
        serde_pickle::to_writer(&mut file, value, SerOptions::new()).unwrap();
        file.finish().unwrap();
        path
    };
    let rows = zipped("rows.pkl.gz", &json!([[-1.5, 12, 13], [0.25, 14]]));
    assert_eq!(AccessibilityTable::read(rows).unwrap(), table);
    for rows in [
        json!({}),
        json!([]),
        json!([3]),
        json!([["a"]]),
        json!([[1.0, -2]]),
        json!([[1.0, 4_294_967_296_i64]]),
        json!([[1, 2]]),
    ] {
        assert!(matches!(AccessibilityTable::read(zipped("bad", &rows)), Err(Error::File { .. })), "{rows}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn limits_have_errors_of_their_own() {
    let read = |text: String| Patterns::new([("it", text)]).map(|_| ()).unwrap_err();
    let too_large = |text: String| assert!(matches!(read(text), PatternError::TooLarge { .. }));
    too_large("C".repeat(2_001));
    too_large(format!("C{}", "(C".repeat(100_000)));
    too_large(format!("[{}C]", "!".repeat(1_000)));
    too_large(format!("C{}C", "!".repeat(1_000)));
    too_large("[$(".repeat(30));
    for text in ["", "C(", "[C", "C1", "C(C))", "[$(C]", "C=", "é", "C C", "[#999]", "[Qq]"] {
        assert!(matches!(read(text.into()), PatternError::Syntax { .. }), "{text}");
    }
    // The parser and the search are recursive. For the longest accepted pattern, their recursion must fit on
    // the smallest stack of this library's threads.
    let deep = move || {
        let pattern = Patterns::new([("it", format!("[{}]", vec!["C"; 999].join(",")))]).unwrap();
        pattern.found_in(&Molecule::from_smiles("CC").unwrap()).unwrap().len()
    };
    assert_eq!(std::thread::Builder::new().stack_size(2 << 20).spawn(deep).unwrap().join().unwrap(), 1);
}

/// The pieces that random SMARTS consist of. With these pieces, random texts are often nearly valid.
const PIECES: [&str; 48] = [
    "C", "c", "N", "n", "O", "o", "S", "[", "]", "(", ")", "$(", "[$(", ")]", "=", "#", "-", ":", "~", "@",
    "!", "&", ",", ";", "1", "2", "%12", "*", "[#6]", "[#1]", "[NX3;H2]", "[R2]", "[r5]", "[+]", "[-2]",
    "D3", "x2", "v4", "^2", ".", "/", "\\", "[13C]", "[C@@H]", "->", "{2-}", "Cl", ":3]",
];

/// Tests random texts as SMARTS. A text must be accepted or refused, and an accepted pattern must be searched
/// for, both without a panic and in a short time. The variable `GFN_FUZZ` sets the number of texts.
#[test]
fn random_texts_are_read_or_refused() {
    let n = std::env::var("GFN_FUZZ").ok().map_or(20_000, |n| n.parse().unwrap());
    let targets = ["CC(=O)Nc1ccc(O)cc1", "C1CC2CCC1C2", "C[N+](C)(C)CC([O-])=O", "c1ccc2c(c1)[nH]c1ccccc12"];
    let targets = targets.map(|text| Molecule::from_smiles(text).unwrap());
    let mut rng = Rng::seeded(std::env::var("GFN_FUZZ_SEED").ok().map_or(0, |seed| seed.parse().unwrap()));
    let known: Vec<String> =
        golden("substructures.json").iter().map(|case| case["smarts"].as_str().unwrap().into()).collect();
    let mut read = 0;
    let mut given_up = 0;
    let mut slowest = Duration::ZERO;
    for k in 0..n {
        let text = if k % 2 == 0 {
            (0..1 + rng.below(24)).map(|_| PIECES[rng.below(PIECES.len())]).collect()
        } else {
            // The text is a valid pattern in which some pieces are replaced.
            let mut bytes = known[rng.below(known.len())].clone().into_bytes();
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(bytes.len() + 1);
                let end = (at + rng.below(3)).min(bytes.len());
                bytes.splice(at..end, PIECES[rng.below(PIECES.len())].bytes());
            }
            String::from_utf8(bytes).unwrap()
        };
        let began = Instant::now();
        if let Ok(patterns) = Patterns::new([("it", &text)]) {
            read += 1;
            match patterns.found_in(&targets[k % targets.len()]) {
                Ok(found) => assert!(found.len() <= 1),
                Err(PatternError::GivenUp { .. }) => given_up += 1,
                Err(error) => panic!("{text}: {error}"),
            }
        }
        slowest = slowest.max(began.elapsed());
    }
    println!("{n} texts: {read} read, {given_up} given up, {slowest:?} at most");
    // The test would be meaningless if all texts were refused.
    assert!(read > n / 20 && slowest < Duration::from_secs(20), "{read} of {n}, {slowest:?}");
}
