//! Tests of reading molecules from SMILES and SD files: salts, isotopes, charges, and invalid texts.

use std::io::BufRead;
use std::time::Instant;

use gfn::Rng;
use gfn_molecules::{Cleanup, Molecule, MoleculeError, MoleculeFormat, MoleculeReader, NotRead, SkipReason};
use serde_json::Value;

fn read(smiles: &str) -> Molecule {
    Molecule::from_smiles(smiles).unwrap()
}

fn all(
    input: impl BufRead,
    format: MoleculeFormat,
    cleanup: Cleanup,
) -> (Vec<Molecule>, gfn_molecules::ReadReport) {
    let mut reader = MoleculeReader::new(input, format).with_cleanup(cleanup);
    let mut molecules = Vec::new();
    let mut errors = 0;
    for molecule in reader.by_ref() {
        match molecule {
            Ok(molecule) => molecules.push(molecule),
            Err(gfn::Error::File { .. }) => errors += 1,
            Err(error) => panic!("{error}"),
        }
    }
    // Only a stream without any molecule must end in an error.
    assert_eq!(errors, usize::from(molecules.is_empty()), "{}", reader.report());
    (molecules, reader.report().clone())
}

#[test]
fn the_largest_part_is_kept_and_a_large_part_that_is_not_read_is_no_counter_ion() {
    let only = Cleanup { largest_part: true, ..Cleanup::default() };
    for (text, kept) in [
        ("[Na+].CCO", "CCO"),
        ("Cl.CN.Cl", "CN"),
        // Of several parts, the one with the most atoms is kept; hydrogens count. If the numbers of atoms are
        // equal, the heavier part is kept.
        ("CC.c1ccoc1", "c1ccoc1"),
        ("CCC.OC=O", "CCC"),
        ("CCO.CCS", "CCS"),
        ("OCC.CCC", "CCC"),
        ("[Pt].[Na+].C", "C"),
    ] {
        let cleaned = only.read(text).unwrap();
        assert_eq!(cleaned.molecule.key(), read(kept).key(), "{text}");
        assert_eq!(cleaned.parts, text.matches('.').count());
    }
    let is = |text: &str, what: NotRead| {
        let error = only.read(text).unwrap_err();
        assert!(
            matches!(&error, MoleculeError::NotRead { what: found, .. } if *found == what),
            "{text}: {error}"
        );
    };
    is("C[Pt]C.C", NotRead::Element);
    is("[Na+].[K+]", NotRead::Element);
    is("[13CH3]C.C", NotRead::Isotope);
    assert!(matches!(
        Cleanup::default().read("C.C"),
        Err(MoleculeError::NotRead { what: NotRead::Parts, .. })
    ));
    // Parts of a SMILES that a ring number joins are one molecule, so the text isn't treated as a salt.
    assert!(matches!(only.read("C1CC.CC1"), Err(MoleculeError::Syntax { .. })));
    assert!(only.read(".").is_err() && only.read("C.").is_err() && only.read(".C").is_err());
}

#[test]
fn isotopes_become_elements_and_nothing_else_changes() {
    let only = Cleanup { without_isotopes: true, ..Cleanup::default() };
    let cleaned = only.read("[13CH3]C%12[15NH]CC%12").unwrap();
    assert_eq!((cleaned.molecule.key(), cleaned.isotopes), (read("CC1NCC1").key(), 2));
    assert_eq!(only.read("C[NH3+]").unwrap().isotopes, 0);
    assert_eq!(only.read("[2H]C").unwrap().molecule.key(), read("C").key());
}

/// Tests the removal of charges. The expected molecules are those of RDKit's `Uncharger`
/// (`scripts/molecules/uncharged.py`).
#[test]
fn charges_are_taken_away_as_rdkit_does() {
    let golden: Value = serde_json::from_str(include_str!("golden/uncharged.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    let only = Cleanup { neutral: true, ..Cleanup::default() };
    let mut changed = 0;
    for case in cases {
        let [smiles, expected] = ["smiles", "uncharged"].map(|key| case[key].as_str().unwrap());
        let cleaned = only.read(smiles).unwrap();
        assert_eq!(cleaned.molecule.key(), read(expected).key(), "{smiles}: {}", cleaned.molecule.smiles());
        changed += usize::from(cleaned.charges > 0);
    }
    assert!(cases.len() >= 80 && changed >= 45, "{changed}");
}

#[test]
fn sd_files_are_read_as_they_were_written() {
    let golden: Value = serde_json::from_str(include_str!("golden/molecules.json")).unwrap();
    let valid = golden["cases"].as_array().unwrap().iter().filter(|case| case["valid"] == true);
    let molecules: Vec<Molecule> =
        valid.filter_map(|case| Molecule::from_smiles(case["smiles"].as_str().unwrap()).ok()).collect();
    assert!(molecules.len() > 100, "{}", molecules.len());
    let mut file = String::new();
    for (k, molecule) in molecules.iter().enumerate() {
        file += &molecule.sdf_record(&format!("number {k}"), &[("score", "1")]).unwrap();
    }
    let (found, report) = all(file.as_bytes(), MoleculeFormat::Sd, Cleanup::default());
    assert_eq!((report.read, report.n_skipped()), (molecules.len(), 0), "{report}");
    for (one, other) in found.iter().zip(&molecules) {
        assert_eq!(one.key(), other.key(), "{}: {}", other.smiles(), one.smiles());
    }
    // Molecules without wedges must not be counted. The report counts a molecule only if its wedges are
    // ignored.
    assert_eq!(report.without_stereo, 0);
    let file = read("C[C@H](N)O").sdf_record("an enantiomer", &[]).unwrap();
    assert_eq!(all(file.as_bytes(), MoleculeFormat::Sd, Cleanup::default()).1.without_stereo, 1);
}

/// Writes a record of an SD file. Each entry of `atoms` has an atom's symbol and the rest of the atom's line.
pub(super) fn record(atoms: &[&str], bonds: &[&str], properties: &[&str]) -> String {
    let mut out = format!("\n\n\n{:3}{:3}  0  0  0  0  0  0  0  0999 V2000\n", atoms.len(), bonds.len());
    for atom in atoms {
        out += &format!("    0.0000    0.0000    0.0000 {atom}\n");
    }
    bonds.iter().chain(properties).for_each(|line| out += &format!("{line}\n"));
    out + "M  END\n$$$$\n"
}

#[test]
fn records_say_charges_isotopes_hydrogens_and_aromatic_bonds() {
    let pyrrole = ["  1  2  4", "  2  3  4", "  3  4  4", "  4  5  4", "  5  1  4"];
    let cases = [
        (record(&["N   0  3"], &[], &[]), "[NH4+]"),
        (record(&["N  ", "C  "], &["  1  2  1"], &["M  CHG  1   1   1"]), "C[NH3+]"),
        (record(&["C  ", "O   0  3"], &["  1  2  1"], &["M  CHG  1   2  -1"]), "C[O-]"),
        (record(&["C  ", "H  ", "H  ", "D  "], &["  1  2  1", "  3  1  1", "  1  4  1"], &[]), "[2H]C"),
        (record(&["C   1", "C  "], &["  1  2  3"], &[]), "[13CH]#C"),
        (record(&["C  ", "C  "], &["  1  2  2"], &["M  ISO  1   2  14"]), "C=[14CH2]"),
        (
            record(
                &["C  ", "C  ", "C  ", "C  ", "N  ", "H  "],
                &[&pyrrole[..], &["  5  6  1"]].concat(),
                &[],
            ),
            "c1cc[nH]c1",
        ),
        (record(&["C  ", "C  ", "C  ", "C  ", "O  "], &pyrrole, &[]), "c1ccoc1"),
        (
            record(
                &["C  ", "C  ", "C  ", "C  ", "C  ", "N  "],
                &[&pyrrole[..4], &["  5  6  4", "  6  1  4"]].concat(),
                &[],
            ),
            "c1ccncc1",
        ),
        (record(&["Na  0  3", "Cl  0  5"], &[], &[]), "[Na+].[Cl-]"),
        (record(&["S  ", "O  ", "O  "], &["  1  2  2", "  1  3  2"], &[]), "O=S=O"),
        (record(&["P   0  0  0  0  0  5", "C  "], &["  1  2  1"], &[]), "C[PH4]"),
    ];
    let cleanup = Cleanup { without_isotopes: true, ..Cleanup::default() };
    for (text, smiles) in &cases {
        let (found, report) = all(text.as_bytes(), MoleculeFormat::Sd, cleanup);
        match cleanup.read(smiles) {
            Ok(expected) => {
                assert_eq!(report.read, 1, "{smiles}: {report:?}");
                assert_eq!(found[0].key(), expected.molecule.key(), "{smiles}: {}", found[0].smiles());
            }
            Err(_) => assert_eq!(report.n_skipped(), 1, "{smiles}: {report:?}"),
        }
    }
    let radical = record(&["C  "], &[], &["M  RAD  1   1   2"]);
    for (text, reason) in [
        (radical.as_str(), SkipReason::Radical),
        ("\n\n\n  0  0  0     0  0            999 V3000\nM  END\n$$$$\n", SkipReason::Record),
        ("\n\n\n  2  1  0  0\n    0.0000    0.0000    0.0000 C  \n", SkipReason::Record),
        ("\n\n\nnothing\n$$$$\n", SkipReason::Record),
        (&record(&["C  "], &["  1  7  1"], &[]), SkipReason::Record),
        (&record(&["C  ", "C  "], &["  1  2  8"], &[]), SkipReason::Record),
        (&record(&["R# "], &[], &[]), SkipReason::Record),
        (&record(&["*  "], &[], &[]), SkipReason::NotRead(NotRead::UnknownAtom)),
        (&record(&["C  ", "C  "], &[], &[]), SkipReason::NotRead(NotRead::Parts)),
        (
            &record(&["C  "; 5], &["  1  2  2", "  1  3  2", "  1  4  1", "  4  5  1"], &[]),
            SkipReason::Valence,
        ),
    ] {
        // A damaged record must not affect the record after it.
        let file = format!("{text}{}{}", if text.ends_with("$$$$\n") { "" } else { "$$$$\n" }, cases[0].0);
        let (found, report) = all(file.as_bytes(), MoleculeFormat::Sd, Cleanup::default());
        assert_eq!(report.skipped.keys().copied().collect::<Vec<_>>(), [reason], "{text}: {report}");
        assert_eq!(found.len(), 1, "{text}");
    }
}

/// Tests texts with lines of megabytes, missing line ends, and invalid UTF-8.
#[test]
fn long_lines_are_cut_off_and_skipped() {
    let mut file = vec![b'C'; 1 << 22];
    file.extend(b"\nCC\n\xff\xfe\n\n  OC\tname\r\n");
    let (found, report) = all(file.as_slice(), MoleculeFormat::Smiles, Cleanup::ALL);
    assert_eq!((found.len(), report.read), (2, 2));
    let reasons: Vec<_> =
        report.skipped.iter().map(|(reason, skipped)| (*reason, skipped.examples[0].line)).collect();
    assert_eq!(reasons, [(SkipReason::TooLarge, 1), (SkipReason::Syntax, 3)]);
    assert!(report.skipped[&SkipReason::TooLarge].examples[0].smiles.len() < 100);
    assert_eq!(all("\u{feff}CC\r\n".as_bytes(), MoleculeFormat::Smiles, Cleanup::ALL).0.len(), 1);
    let (found, report) = all(vec![b' '; 1 << 22].as_slice(), MoleculeFormat::Sd, Cleanup::ALL);
    assert_eq!((found.len(), report.n_skipped()), (0, 0));
}

/// Returns the program's peak memory in kB; 0 if the system doesn't report it.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Tests thousands of randomly changed texts. Reading a changed text must neither panic nor hang, and must
/// need at most 64 MB. For a long run, use `GFN_FUZZ=1000000 cargo test molecule_files::texts`.
#[test]
fn texts_that_are_damaged_are_read_or_refused() {
    let runs: usize = std::env::var("GFN_FUZZ").ok().and_then(|runs| runs.parse().ok()).unwrap_or(20_000);
    let golden: Value = serde_json::from_str(include_str!("golden/molecules.json")).unwrap();
    let texts: Vec<&str> =
        golden["cases"].as_array().unwrap().iter().filter_map(|case| case["smiles"].as_str()).collect();
    let records: Vec<String> = texts
        .iter()
        .filter_map(|text| Molecule::from_smiles(text).ok()?.sdf_record("name", &[]).ok())
        .chain([record(&["Na  0  3", "Cl  0  5"], &[], &["M  CHG  2   1   1   2  -1"])])
        .collect();
    let mut rng = Rng::seeded(9);
    let began = Instant::now();
    let before = peak();
    let mut kept = 0;
    let mut skipped = 0;
    for run in 0..runs {
        let sd = run % 2 == 1;
        let source =
            if sd { records[rng.below(records.len())].as_str() } else { texts[rng.below(texts.len())] };
        let mut bytes = source.as_bytes().to_vec();
        for _ in 0..1 + rng.below(6) {
            const MARKS: &[u8] = b"[]()%0123456789.=#:/\\@+-cnosCNOSPFHBrl*$ \n\0\xff>M";
            let at = rng.below(bytes.len() + 1);
            let mark = MARKS[rng.below(MARKS.len())];
            match rng.below(4) {
                0 => bytes.insert(at, mark),
                1 if at < bytes.len() => bytes[at] = mark,
                2 if at < bytes.len() => drop(bytes.remove(at)),
                _ => {
                    // A piece of the text is repeated, sometimes many times.
                    let end = (at + rng.below(8)).min(bytes.len());
                    let times = 1 + rng.below(3) * rng.below(60);
                    let piece = bytes[at..end].repeat(times);
                    bytes.splice(at..at, piece);
                }
            }
        }
        let format = if sd { MoleculeFormat::Sd } else { MoleculeFormat::Smiles };
        let cleanup = if rng.below(2) == 0 { Cleanup::ALL } else { Cleanup::default() };
        let (molecules, report) = all(bytes.as_slice(), format, cleanup);
        for molecule in molecules {
            assert_eq!(
                read(&molecule.smiles()).key(),
                molecule.key(),
                "{:?}",
                String::from_utf8_lossy(&bytes)
            );
        }
        (kept, skipped) = (kept + report.read, skipped + report.n_skipped());
    }
    let grown = peak().saturating_sub(before);
    println!(
        "{runs} texts: {kept} molecules, {skipped} skipped, in {:?}; {grown} kB more at most",
        began.elapsed()
    );
    // The limit on memory is checked only in long runs, because other tests that run at the same time need
    // memory, too.
    assert!(runs < 1_000_000 || grown < 64 << 10);
    assert!(kept > runs / 50 && skipped > runs / 10);
}
