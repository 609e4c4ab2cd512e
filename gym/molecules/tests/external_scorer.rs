//! External scorers that work, crash, hang, print garbage or NaN, or too much.

#![cfg(unix)]
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gfn_molecules::{ExternalScorer, ExternalScorerConfig, Molecule, MoleculeScore, ScorerError};

fn config(script: &str) -> ExternalScorerConfig {
    ExternalScorerConfig { timeout: Duration::from_secs(20), ..ExternalScorerConfig::new(["sh", "-c", script]) }
}

fn scorer(script: &str) -> ExternalScorer {
    ExternalScorer::new(config(script)).unwrap()
}

fn names(n: usize) -> Vec<String> {
    (1..=n).map(|n| "C".repeat(n)).collect()
}

/// Lengths of lines, written at once.
const LENGTHS: &str = r#"while read -r s; do echo "${#s}"; done"#;

#[test]
fn answers_come_in_order_from_several_workers_and_are_asked_for_once() {
    let config = ExternalScorerConfig { workers: 3, batch: 7, ..config(LENGTHS) };
    let scorer = ExternalScorer::new(config).unwrap();
    let mut asked = names(100);
    asked.extend(names(30));
    let expected: Vec<f64> = asked.iter().map(|name| name.len() as f64).collect();
    assert_eq!(scorer.scores(&asked).unwrap(), expected);
    assert_eq!(scorer.n_cached(), 100);
    assert_eq!(scorer.scores(&asked).unwrap(), expected);
    assert_eq!(scorer.scores(&[]).unwrap(), [0.0; 0]);
    // By canonical SMILES: the same molecule twice.
    let molecules = ["OCC", "C(C)O"].map(|text| Molecule::from_smiles(text).unwrap());
    assert_eq!(scorer.log_scores(&molecules).unwrap(), [3f64.ln(); 2]);
    assert_eq!(scorer.n_cached(), 101);
    let usage = scorer.usage();
    // The 30 twice in the first call, all 130 of the second, and ethanol's other writing; three letters had come before.
    assert_eq!((usage.asked, usage.from_cache), (101, 30 + 130 + 1));
    assert!(usage.started <= 3 && usage.waited > Duration::ZERO);
}

#[test]
fn the_smallest_example_of_a_scorer_is_the_descriptor() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/heteroatom_scorer.py");
    let config = ExternalScorerConfig { workers: 2, ..ExternalScorerConfig::new(["python3", script]) };
    let texts =
        ["CCO", "c1ccccc1[N+](=O)[O-]", "ClCCBr", "C[Si](C)(C)C", "c1cc[nH]c1", "[se]1cccc1", "C", "FS(F)(F)(F)(F)F"];
    let molecules = texts.map(|text| Molecule::from_smiles(text).unwrap());
    let found = ExternalScorer::new(config).unwrap().log_scores(&molecules).unwrap();
    let expected = (|molecule: &Molecule| 0.1 + molecule.heteroatom_share()).log_scores(&molecules).unwrap();
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {expected:?}");
}

#[test]
fn a_scorer_that_crashes_goes_on_where_it_stopped() {
    // Ends after three lines, again and again: each start answers three molecules.
    let scorer = scorer(r#"for k in 1 2 3; do read -r s || exit 0; echo "${#s}"; done; exit 3"#);
    assert_eq!(scorer.scores(&names(20)).unwrap(), (1..=20).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn a_molecule_that_always_crashes_is_named_and_the_others_are_kept() {
    let script = r#"while read -r s; do [ "$s" = CCC ] && exit 1; echo "${#s}"; done"#;
    let failing = scorer(script);
    let error = failing.scores(&names(5)).unwrap_err();
    assert_eq!(error, ScorerError::Crashed { smiles: "CCC".into(), tries: 3 });
    assert_eq!(failing.n_cached(), 2);
    assert_eq!(failing.scores(&names(2)).unwrap(), [1.0, 2.0]);
    let kind = ExternalScorer::new(ExternalScorerConfig { on_failure: Some(0.5), ..config(script) }).unwrap();
    assert_eq!(kind.scores(&names(5)).unwrap(), [1.0, 2.0, 0.5, 4.0, 5.0]);
}

#[test]
fn what_is_counted_is_what_was_done() {
    let missing = ExternalScorer::new(ExternalScorerConfig::new(["no-such-program-here"])).unwrap();
    assert!(missing.scores(&names(3)).is_err());
    assert_eq!((missing.usage().asked, missing.usage().started), (0, 0));
    // All five are given at once or by and by, to three processes in each call, and again in the next one.
    let script = r#"while read -r s; do [ "$s" = CCC ] && exit 1; echo "${#s}"; done"#;
    let failing = ExternalScorer::new(ExternalScorerConfig { batch: 5, ..config(script) }).unwrap();
    let given = names(4);
    for call in 1..=3 {
        assert!(failing.scores(&given).is_err());
        let usage = failing.usage();
        assert!((3..=4).contains(&usage.asked), "{usage:?}");
        assert_eq!((usage.started, usage.from_cache), (3 * call, 2 * (call - 1)));
    }
    assert_eq!(failing.n_cached(), 2);
}

/// The path of a file of this test's own, which goes with it.
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
    // What hangs is a child of the program, as where a script wraps it: it must not outlive its parent.
    let beats = Scratch::new("beats");
    let hung = format!("sh -c 'while :; do echo beat >>\"$0\"; sleep 0.1; done' {beats}");
    let config = ExternalScorerConfig {
        timeout: Duration::from_secs(2),
        retries: 1,
        ..config(&format!(r#"while read -r s; do [ "$s" = CC ] && {hung}; echo 1; done"#))
    };
    let scorer = ExternalScorer::new(config).unwrap();
    let start = Instant::now();
    let error = scorer.scores(&names(200)).unwrap_err();
    assert!(matches!(error, ScorerError::TimedOut { tries: 2, .. }), "{error}");
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
        let scorer = scorer(&format!(r#"while read -r s; do [ $s = CC ] && echo "{answer}" || echo 1; done"#));
        assert_eq!(scorer.scores(&names(4)).unwrap_err(), expected);
        // The next call starts the program anew, and isn't one line behind.
        assert_eq!(scorer.scores(&["CCC".into()]).unwrap(), [1.0]);
    }
    let nan = scorer("while read -r s; do echo nan; done").scores(&names(1)).unwrap_err();
    assert!(matches!(nan, ScorerError::NonFinite { value, .. } if value.is_nan()));
    let missing = ExternalScorer::new(ExternalScorerConfig::new(["no-such-program-here"])).unwrap();
    assert!(matches!(missing.scores(&names(1)).unwrap_err(), ScorerError::Start { .. }));
    // One line too many is found before the next batch, at the latest when it has come through the pipe.
    let chatty = scorer("while read -r s; do printf '1\\n2\\n'; done");
    let found = (1..1000).find_map(|n| chatty.scores(&["C".repeat(n)]).err());
    assert!(matches!(found, Some(ScorerError::Unasked { .. })), "{found:?}");
    // Which line was the one too many isn't known: no answer of that process is kept.
    assert_eq!(chatty.n_cached(), 0);
}

#[test]
fn texts_that_arent_one_line_are_refused_before_anything_is_asked() {
    let scorer = scorer(LENGTHS);
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
    assert_eq!((scorer.usage().started, scorer.usage().asked), (0, 0));
    assert_eq!(scorer.scores(&["N".into(), "OO".into()]).unwrap(), [1.0, 2.0]);
}

#[test]
fn an_answer_of_nan_costs_no_restart() {
    let script = r#"while read -r s; do [ $((${#s} % 2)) = 0 ] && echo nan || echo "${#s}"; done"#;
    for workers in [1, 2] {
        let config = ExternalScorerConfig { on_failure: Some(0.5), workers, batch: 8, ..config(script) };
        let scorer = ExternalScorer::new(config).unwrap();
        let expected: Vec<f64> = (1..=40).map(|n| if n % 2 == 0 { 0.5 } else { f64::from(n) }).collect();
        assert_eq!(scorer.scores(&names(40)).unwrap(), expected);
        assert!(scorer.usage().started <= workers as u64, "{:?}", scorer.usage());
        assert_eq!(scorer.scores(&names(41)).unwrap()[38..], [39.0, 0.5, 41.0]);
        assert!(scorer.usage().started <= workers as u64);
    }
}

#[test]
fn a_process_that_chatters_takes_its_own_answers_along() {
    let marker = Scratch::new("marker");
    // The first process answers three times and ends; the next one writes twice for each.
    let script = format!(
        r#"F={marker}; if [ -e "$F" ]; then while read -r s; do printf '7\n7\n'; done
           else : >"$F"; for k in 1 2 3; do read -r s; echo "${{#s}}"; done; fi"#
    );
    let scorer = scorer(&script);
    assert_eq!(scorer.scores(&names(3)).unwrap(), [1.0, 2.0, 3.0]);
    let found = (4..1000).find_map(|n| scorer.scores(&["C".repeat(n)]).err());
    assert!(matches!(found, Some(ScorerError::Unasked { .. })), "{found:?}");
    assert_eq!((scorer.n_cached(), scorer.scores(&names(3)).unwrap()), (3, vec![1.0, 2.0, 3.0]));
}

#[test]
fn half_a_line_is_no_answer() {
    // The number that it would have written may have been 123.
    let script = r#"while read -r s; do [ "$s" = CC ] && printf 12 && exit 1; echo 5; done"#;
    let cut = scorer(script);
    assert_eq!(cut.scores(&names(3)).unwrap_err(), ScorerError::Crashed { smiles: "CC".into(), tries: 3 });
    assert_eq!(cut.n_cached(), 1);
    // Nor is the beginning of one that has no end.
    let error = scorer("while read -r s; do printf '%05000d\n' 1; done").scores(&names(2)).unwrap_err();
    assert!(matches!(&error, ScorerError::NoNumber { smiles, .. } if smiles == "C"), "{error}");
}

#[test]
fn senseless_settings_are_refused() {
    let base = config(LENGTHS);
    for config in [
        ExternalScorerConfig { command: Vec::new(), ..base.clone() },
        ExternalScorerConfig { workers: 0, ..base.clone() },
        ExternalScorerConfig { batch: 0, ..base.clone() },
        ExternalScorerConfig { timeout: Duration::ZERO, ..base.clone() },
        ExternalScorerConfig { on_failure: Some(f64::NAN), ..base },
    ] {
        assert!(ExternalScorer::new(config).is_err());
    }
}
