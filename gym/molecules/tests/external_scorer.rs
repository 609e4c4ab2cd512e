//! Tests of external programs that score molecules: programs that work, crash, hang, print garbage or NaN, or
//! print too much.

#![cfg(unix)]
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gfn_molecules::{ExternalScorer, Molecule, MoleculeScore, ScorerError};

const TIMEOUT: Duration = Duration::from_secs(20);

fn scorer(script: &str) -> ExternalScorer {
    ExternalScorer::new(["sh", "-c", script], TIMEOUT).unwrap()
}

fn names(n: usize) -> Vec<String> {
    (1..=n).map(|n| "C".repeat(n)).collect()
}

#[test]
fn answers_come_in_order_and_are_asked_for_once() {
    // The program logs each SMILES that it receives to a file.
    let log = Scratch::new("given");
    let scorer = scorer(&format!(r#"while read -r s; do echo "$s" >>{log}; echo "${{#s}}"; done"#));
    let mut asked = names(100);
    asked.extend(names(30));
    let expected: Vec<f64> = asked.iter().map(|name| name.len() as f64).collect();
    assert_eq!(scorer.scores(&asked).unwrap(), expected);
    assert_eq!(scorer.n_cached(), 100);
    assert_eq!(scorer.scores(&asked).unwrap(), expected);
    assert_eq!(scorer.scores(&[]).unwrap(), [0.0; 0]);
    // The two molecules have the same canonical SMILES, so the program must receive a single SMILES.
    let molecules = ["OCC", "C(C)O"].map(|text| Molecule::from_smiles(text).unwrap());
    assert_eq!(scorer.log_scores(&molecules).unwrap(), [3f64.ln(); 2]);
    assert_eq!(scorer.n_cached(), 101);
    assert_eq!(std::fs::read_to_string(&log.0).unwrap().lines().count(), 101);
}

#[test]
fn the_smallest_example_of_a_scorer_is_the_descriptor() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/heteroatom_scorer.py");
    let texts = [
        "CCO",
        "c1ccccc1[N+](=O)[O-]",
        "ClCCBr",
        "C[Si](C)(C)C",
        "c1cc[nH]c1",
        "[se]1cccc1",
        "C",
        "FS(F)(F)(F)(F)F",
    ];
    let molecules = texts.map(|text| Molecule::from_smiles(text).unwrap());
    let found = ExternalScorer::new(["python3", script], TIMEOUT).unwrap().log_scores(&molecules).unwrap();
    let expected = (|molecule: &Molecule| 0.1 + molecule.heteroatom_share()).log_scores(&molecules).unwrap();
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {expected:?}");
}

#[test]
fn a_molecule_that_crashes_the_program_is_named_and_the_others_are_kept() {
    let failing = scorer(r#"while read -r s; do [ "$s" = CCC ] && exit 1; echo "${#s}"; done"#);
    for _ in 0..2 {
        let error = failing.scores(&names(5)).unwrap_err();
        assert_eq!(error, ScorerError::Crashed { smiles: "CCC".into() });
        assert_eq!(failing.n_cached(), 2);
    }
    // The next call must restart the program.
    assert_eq!(failing.scores(&["C", "CCCC"].map(str::to_owned)).unwrap(), [1.0, 4.0]);
}

/// The path of a temporary file, which is deleted when the `Scratch` is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gfn-scorer-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }
}

impl std::fmt::Display for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.display())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn silence_is_an_error_in_time() {
    // The program starts a child that hangs, as happens if a script wraps a program. After the time-out the
    // child must be ended, too.
    let beats = Scratch::new("beats");
    let hung = format!("sh -c 'while :; do echo beat >>\"$0\"; sleep 0.1; done' {beats}");
    let script = format!(r#"while read -r s; do [ "$s" = CC ] && {hung}; echo 1; done"#);
    let scorer = ExternalScorer::new(["sh", "-c", &script], Duration::from_secs(2)).unwrap();
    let start = Instant::now();
    let error = scorer.scores(&names(200)).unwrap_err();
    assert_eq!(error, ScorerError::TimedOut { smiles: "CC".into(), seconds: 2.0 });
    assert!(start.elapsed() < Duration::from_secs(60));
    let beaten = || std::fs::metadata(&beats.0).unwrap().len();
    let before = beaten();
    std::thread::sleep(Duration::from_millis(500));
    assert!(before > 0 && beaten() == before, "it goes on");
    assert_eq!(scorer.scores(&["CCC".into()]).unwrap(), [1.0]);
}

#[test]
fn what_is_no_number_is_named() {
    for (answer, expected) in [
        ("hello", ScorerError::NoNumber { smiles: "CC".into(), line: "hello".into() }),
        ("", ScorerError::NoNumber { smiles: "CC".into(), line: String::new() }),
        ("inf", ScorerError::NonFinite { smiles: "CC".into(), value: f64::INFINITY }),
    ] {
        let scorer =
            scorer(&format!(r#"while read -r s; do [ $s = CC ] && echo "{answer}" || echo 1; done"#));
        assert_eq!(scorer.scores(&names(4)).unwrap_err(), expected);
        // The next call must restart the program. Otherwise its answers would be one line behind.
        assert_eq!(scorer.scores(&["CCC".into()]).unwrap(), [1.0]);
    }
    let nan = scorer("while read -r s; do echo nan; done").scores(&names(1)).unwrap_err();
    assert!(matches!(nan, ScorerError::NonFinite { value, .. } if value.is_nan()));
    let missing = ExternalScorer::new(["no-such-program-here"], TIMEOUT).unwrap();
    assert!(matches!(missing.scores(&names(1)).unwrap_err(), ScorerError::Start { .. }));
    // The program prints two lines for each SMILES. The superfluous line must be noticed before a later
    // batch, as soon as it has arrived through the pipe.
    let chatty = scorer("while read -r s; do printf '1\\n2\\n'; done");
    let found = (1..1000).find_map(|n| chatty.scores(&["C".repeat(n)]).err());
    assert!(matches!(found, Some(ScorerError::Unasked { .. })), "{found:?}");
    // Either line may be the superfluous one, so no answer of that process may stay in the cache.
    assert_eq!(chatty.n_cached(), 0);
}

#[test]
fn texts_that_arent_one_line_are_refused_before_anything_is_asked() {
    let log = Scratch::new("refused");
    let scorer = scorer(&format!(r#"while read -r s; do echo "$s" >>{log}; echo "${{#s}}"; done"#));
    for (text, character) in [
        ("CC\nCCCC", '\n'),
        ("C\r", '\r'),
        ("\0", '\0'),
        ("C\tC", '\t'),
        ("C\u{85}", '\u{85}'),
        ("\u{2028}C", '\u{2028}'),
    ] {
        let error = scorer.scores(&["N".into(), text.into(), "OO".into()]).unwrap_err();
        assert_eq!(error, ScorerError::Control { row: 1, text: text.into(), character });
    }
    assert!(!log.0.exists());
    assert_eq!(scorer.scores(&["N".into(), "OO".into()]).unwrap(), [1.0, 2.0]);
}

#[test]
fn half_a_line_is_no_answer() {
    // The program prints 12 without a line end and exits. The complete number might have been 123, so 12 must
    // not be accepted.
    let script = r#"while read -r s; do [ "$s" = CC ] && printf 12 && exit 1; echo 5; done"#;
    let cut = scorer(script);
    assert_eq!(cut.scores(&names(3)).unwrap_err(), ScorerError::Crashed { smiles: "CC".into() });
    assert_eq!(cut.n_cached(), 1);
    // A number of 5,000 digits is cut off; its beginning must not be accepted either.
    let error = scorer("while read -r s; do printf '%05000d\n' 1; done").scores(&names(2)).unwrap_err();
    assert!(matches!(&error, ScorerError::NoNumber { smiles, .. } if smiles == "C"), "{error}");
}

#[test]
fn senseless_settings_are_refused() {
    assert!(ExternalScorer::new([""; 0], TIMEOUT).is_err());
    assert!(ExternalScorer::new(["true"], Duration::ZERO).is_err());
}
