//! Records of training: what is read is what was written, whatever kills the writer, and each step once.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use gfn::graph::{GraphEnv, GraphStates};
use gfn::nn::{GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::policy::GraphPolicy;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::train::{Fit, Trainer, TrainerConfig};
use gfn::{Error, Rng};
use gfn_molecules::{Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward};
use gfn_record::{Described, Filter, RecordReader, RecordWriter, Sample, TrainingRecord};

/// A folder of a test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gfn-record-{name}-{}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn sample(text: &str, log_reward: f64, scores: &[f64]) -> Sample {
    Sample { text: text.into(), key: text.to_lowercase().into(), log_reward, scores: scores.to_vec() }
}

#[test]
fn what_is_read_is_what_was_written() {
    let folder = Folder::new("filters");
    let path = folder.join("run.sqlite");
    let mut writer = RecordWriter::new_run(&path, &["qed", "sa"]).unwrap();
    let infinite = f64::NEG_INFINITY;
    let steps = [
        (1, vec![sample("A", 0.1 + 0.2, &[0.5, f64::NAN]), sample("B", -1.0, &[1e-300, -2.5])]),
        (2, vec![]),
        (5, vec![sample("a", 2.0, &[0.0, 3.0]), sample("it's \"C\" \u{1f600}", infinite, &[f64::INFINITY, 1.0])]),
    ];
    for (step, samples) in &steps {
        writer.append(*step, samples).unwrap();
    }
    // Read while it is open for writing.
    let reader = RecordReader::open(&path).unwrap();
    assert_eq!(reader.columns(), ["qed", "sa"]);
    let all = reader.samples(&Filter::default()).unwrap();
    let expected: Vec<(usize, usize, &Sample)> =
        steps.iter().flat_map(|(step, samples)| samples.iter().enumerate().map(|(k, s)| (*step, k, s))).collect();
    assert_eq!(all.len(), 4);
    for (found, (step, place, sample)) in all.iter().zip(expected) {
        assert_eq!((found.run, found.step, found.place), (1, step, place));
        let bits = |sample: &Sample| -> Vec<u64> {
            sample.scores.iter().chain([&sample.log_reward]).map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect()
        };
        assert_eq!((&found.sample.text, &found.sample.key), (&sample.text, &sample.key));
        assert_eq!(bits(&found.sample), bits(sample));
    }
    let texts = |filter: Filter| -> Vec<String> {
        reader.samples(&filter).unwrap().into_iter().map(|found| found.sample.text).collect()
    };
    assert_eq!(texts(Filter { steps: Some(2..=5), ..Filter::default() }), ["a", "it's \"C\" \u{1f600}"]);
    assert_eq!(texts(Filter { best: Some(2), ..Filter::default() }), ["a", "A"]);
    // A and a are one object: the better one stands for it.
    assert_eq!(texts(Filter { best: Some(2), distinct: true, ..Filter::default() }), ["a", "B"]);
    assert_eq!(texts(Filter { steps: Some(1..=1), distinct: true, ..Filter::default() }), ["A", "B"]);
    assert_eq!(texts(Filter { run: Some(2), ..Filter::default() }), [""; 0]);

    // Another run of the same file; and the first one again, from behind step 1.
    let token = writer.token().to_owned();
    drop(writer);
    RecordWriter::new_run(&path, &["qed", "sa"]).unwrap().append(5, &steps[0].1).unwrap();
    let mut writer = RecordWriter::go_on(&path, &["qed", "sa"], &token, 1).unwrap();
    assert_eq!(writer.token(), token);
    writer.append(2, &steps[2].1).unwrap();
    let runs = reader.runs().unwrap();
    assert_eq!(
        runs.iter().map(|run| (run.id, run.last_step, run.samples)).collect::<Vec<_>>(),
        [(1, Some(2), 4), (2, Some(5), 2)]
    );
    // The negative control: what is there already is refused, and nothing of it is kept.
    let error = writer.append(2, &steps[0].1).unwrap_err();
    assert!(matches!(&error, Error::Contract { detail, .. } if detail.contains("step 2")), "{error}");
    assert_eq!(reader.samples(&Filter::default()).unwrap().len(), 6);
    // A run that this file doesn't have is a new one.
    let stranger = RecordWriter::go_on(&path, &["qed", "sa"], "no such token", 1).unwrap();
    assert!(stranger.token() != "no such token" && reader.runs().unwrap().len() == 3);
    reader.check().unwrap();
}

/// The mode in which SQLite has to make files beside one, which takes permission to write.
fn is_in_wal_mode(path: &PathBuf) -> bool {
    fs::read(path).unwrap()[18..20] == [2, 2]
}

#[test]
fn a_run_that_has_ended_leaves_one_plain_file() {
    let folder = Folder::new("ended");
    let path = folder.join("run.sqlite");
    let files = || fs::read_dir(&folder.0).unwrap().count();
    let mut writer = RecordWriter::new_run(&path, &[]).unwrap();
    writer.append(1, &[sample("A", 0.0, &[])]).unwrap();
    assert!(is_in_wal_mode(&path));
    drop(writer);
    assert_eq!((is_in_wal_mode(&path), files()), (false, 1));
    // Reading it makes no file, and another run changes the mode for as long as it lasts.
    let reader = RecordReader::open(&path).unwrap();
    assert_eq!((reader.samples(&Filter::default()).unwrap().len(), files()), (1, 1));
    let mut writer = RecordWriter::new_run(&path, &[]).unwrap();
    writer.append(1, &[sample("B", 0.0, &[])]).unwrap();
    assert_eq!(reader.samples(&Filter::default()).unwrap().len(), 2);
    // Somebody who reads then keeps nobody waiting, and loses nothing.
    let began = Instant::now();
    drop(writer);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(reader.samples(&Filter::default()).unwrap().len(), 2);
    drop(reader);
    RecordReader::open(&path).unwrap().check().unwrap();
    drop(RecordWriter::new_run(&path, &[]).unwrap());
    assert_eq!((is_in_wal_mode(&path), files()), (false, 1));
}

#[test]
fn other_files_and_senseless_rows_are_refused() {
    let folder = Folder::new("refused");
    let path = folder.join("run.sqlite");
    let message = |result: gfn::Result<RecordWriter>| result.unwrap_err().to_string();
    for name in ["", "Upper", "step", "1st", "two words", "x\"; DROP TABLE samples; --"] {
        assert!(matches!(RecordWriter::new_run(&path, &[name]), Err(Error::Config { .. })), "{name}");
    }
    assert!(matches!(RecordWriter::new_run(&path, &["a", "a"]), Err(Error::Config { .. })));
    let mut writer = RecordWriter::new_run(&path, &["a"]).unwrap();
    assert!(matches!(writer.append(1, &[sample("A", 0.0, &[])]), Err(Error::Shape { .. })));
    for reward in [f64::NAN, f64::INFINITY] {
        let rows = [sample("A", 0.0, &[0.0]), sample("B", reward, &[0.0])];
        assert!(matches!(writer.append(1, &rows), Err(Error::NonFinite { row: 1, .. })));
    }
    assert!(RecordReader::open(&path).unwrap().samples(&Filter::default()).unwrap().is_empty());
    assert!(message(RecordWriter::new_run(&path, &["a", "b"])).contains("scores [\"a\"]"));
    drop(writer);

    let text = folder.join("notes.txt");
    fs::write(&text, "these are my notes, and they are longer than a header of a hundred bytes. ".repeat(20)).unwrap();
    assert!(message(RecordWriter::new_run(&text, &[])).contains("not a database"));
    assert!(fs::read_to_string(&text).unwrap().starts_with("these are my notes"));
    assert!(matches!(RecordReader::open(folder.join("none.sqlite")), Err(Error::File { .. })));
    assert!(matches!(RecordWriter::new_run(folder.join("none/run.sqlite"), &[]), Err(Error::File { .. })));

    // The numbers of SQLite's header: user_version at byte 60, application_id at byte 68.
    let whole = fs::read(&path).unwrap();
    for (byte, expected) in [(63, "version 9"), (71, "not a record")] {
        let other = folder.join("other.sqlite");
        let mut bytes = whole.clone();
        bytes[byte] = 9;
        fs::write(&other, bytes).unwrap();
        assert!(message(RecordWriter::new_run(&other, &["a"])).contains(expected));
        assert!(RecordReader::open(&other).unwrap_err().to_string().contains(expected));
    }
}

/// Names that SQL has for something else in the queries of a reader.
#[test]
fn scores_may_have_the_names_of_other_columns() {
    let folder = Folder::new("names");
    let path = folder.join("run.sqlite");
    let names = ["id", "token", "started", "nth", "row_number", "select"];
    let mut writer = RecordWriter::new_run(&path, &names).unwrap();
    let scores = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    writer.append(1, &[sample("A", 0.0, &scores), sample("a", 1.0, &scores)]).unwrap();
    let reader = RecordReader::open(&path).unwrap();
    let runs = reader.runs().unwrap();
    assert_eq!((runs.len(), runs[0].id, runs[0].token.as_str(), runs[0].samples), (1, 1, writer.token(), 2));
    // As many as there are.
    for best in [None, Some(usize::MAX)] {
        let found = reader.samples(&Filter { distinct: true, best, ..Filter::default() }).unwrap();
        assert_eq!((found.len(), found[0].sample.text.as_str()), (1, "a"));
        assert_eq!(found[0].sample.scores, scores);
    }
    assert!(matches!(RecordWriter::new_run(&path, &["_nth"]), Err(Error::Config { .. })));
}

/// While someone reads, nothing can be moved out of the log: what waits for the disk is a commit of its own, which the log gets.
#[test]
fn a_record_is_synced_while_it_is_read() {
    let folder = Folder::new("sync");
    let path = folder.join("run.sqlite");
    let mut writer = RecordWriter::new_run(&path, &[]).unwrap();
    writer.append(1, &[sample("A", 0.0, &[])]).unwrap();
    let reader = RecordReader::open(&path).unwrap();
    let log = || fs::metadata(folder.join("run.sqlite-wal")).unwrap().len();
    let mut met = 0;
    reader
        .visit(&Filter::default(), |_| {
            writer.append(2, &[sample("B", 0.0, &[])]).unwrap();
            let before = log();
            writer.sync().unwrap();
            assert!(log() > before, "{before} bytes before and after");
            met += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!((met, reader.samples(&Filter::default()).unwrap().len()), (1, 2));
    assert_eq!(reader.runs().unwrap()[0].token, writer.token());
}

#[test]
fn runs_that_start_a_new_file_at_once_share_it() {
    const RUNS: usize = 4;
    let folder = Folder::new("race");
    for round in 0..20 {
        let path = folder.join(&format!("{round}.sqlite"));
        let start = std::sync::Barrier::new(RUNS);
        std::thread::scope(|scope| {
            for _ in 0..RUNS {
                scope.spawn(|| {
                    start.wait();
                    RecordWriter::new_run(&path, &["a"]).unwrap().append(1, &[sample("A", 0.0, &[0.0])]).unwrap();
                });
            }
        });
        let runs = RecordReader::open(&path).unwrap().runs().unwrap();
        assert_eq!(runs.iter().map(|run| run.samples).collect::<Vec<_>>(), [1; RUNS]);
    }
}

const PATH: &str = "GFN_TEST_RECORD";
/// Samples of a step.
const SAMPLES: usize = 16;

/// What the child records.
fn made_up(step: usize) -> Vec<Sample> {
    let one = |place: usize| {
        let text = format!("object {} of step {step}", place % 5);
        Sample { key: text.clone().into(), text, log_reward: (step * place) as f64 / 7.0, scores: vec![step as f64] }
    };
    (0..SAMPLES).map(one).collect()
}

/// A run that records step after step and says so on its standard output; it goes on behind step `GFN_TEST_FROM` of a run.
#[test]
#[ignore = "run by the test beside it, as a process of its own"]
fn child() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let from: usize = std::env::var("GFN_TEST_FROM").unwrap().parse().unwrap();
    let token = std::env::var("GFN_TEST_TOKEN").unwrap();
    let mut writer = RecordWriter::go_on(path, &["step_again"], &token, from).unwrap();
    let mut said =
        fs::OpenOptions::new().append(true).create(true).open(std::env::var("GFN_TEST_SAID").unwrap()).unwrap();
    for step in from + 1.. {
        writer.append(step, &made_up(step)).unwrap();
        if step % 7 == 0 {
            writer.sync().unwrap();
        }
        writeln!(said, "{step}").unwrap();
    }
}

#[test]
#[cfg(unix)]
fn what_was_committed_survives_twelve_kills() {
    let folder = Folder::new("killed");
    let (path, said) = (folder.join("run.sqlite"), folder.join("said"));
    let mut token = RecordWriter::new_run(&path, &["step_again"]).unwrap().token().to_owned();
    let (mut rng, mut from) = (Rng::seeded(5), 0);
    for round in 0..12 {
        fs::write(&said, "").unwrap();
        let steps_said = || fs::read_to_string(&said).unwrap().lines().filter_map(|line| line.parse().ok()).collect();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "record::child", "--ignored", "--nocapture"])
            .env(PATH, &path)
            .env("GFN_TEST_FROM", from.to_string())
            .env("GFN_TEST_TOKEN", &token)
            .env("GFN_TEST_SAID", &said)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (target, started) = (1 + rng.below(40), Instant::now());
        while Vec::<usize>::len(&steps_said()) < target {
            assert!(child.try_wait().unwrap().is_none() && started.elapsed() < Duration::from_secs(60));
            sleep(Duration::from_millis(1));
        }
        // Into a transaction, most likely.
        sleep(Duration::from_micros(rng.below(3_000) as u64));
        child.kill().unwrap();
        child.wait().unwrap();

        let committed: usize = *steps_said().last().unwrap();
        let reader = RecordReader::open(&path).unwrap();
        reader.check().unwrap();
        let found = reader.samples(&Filter::default()).unwrap();
        let last = found.last().unwrap().step;
        assert!(last == committed || last == committed + 1, "round {round}: {last}, where {committed} was committed");
        // Every step once and whole, those that were made again included.
        let expected: Vec<(usize, Sample)> =
            (1..=last).flat_map(|step| made_up(step).into_iter().map(move |sample| (step, sample))).collect();
        assert!(found.into_iter().map(|found| (found.step, found.sample)).eq(expected), "round {round}");
        assert_eq!(reader.runs().unwrap().len(), 1);
        // The next one goes on from some checkpoint before.
        from = last - rng.below(last.min(9));
        token = reader.runs().unwrap()[0].token.clone();
    }
    assert!(from > 12, "there was something to lose");
}

type MoleculeTrainer = Trainer<GraphEnv>;

const BATCH: usize = 8;

fn trainer(seed: u64) -> MoleculeTrainer {
    let molecules = MoleculeEnv::new(MoleculeConfig::new(3)).unwrap();
    let env = molecules.env().clone();
    let mut rng = Rng::seeded(seed);
    let network = GraphNetConfig { embedding: 8, layers: 1, ..GraphNetConfig::default() };
    let net = GraphNet::new(&env, network, tch::Device::Cpu, tch::Kind::Float, &mut rng).unwrap();
    let reward = MoleculeReward::new(molecules.codec(), |molecule: &Molecule| 0.1 + molecule.heteroatom_share());
    let config = TrainerConfig { batch: BATCH, replay_after: 3, ..TrainerConfig::default() };
    let buffer = ReplayConfig { capacity: 50, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap();
    trainer.with_replay(ReplayBuffer::distinct(buffer).unwrap())
}

fn recorded(path: PathBuf) -> TrainingRecord<GraphEnv> {
    let molecules = MoleculeEnv::new(MoleculeConfig::new(3)).unwrap();
    TrainingRecord::new(path, &["atoms"], move |_: &GraphEnv, states: &GraphStates| {
        let described = |graph| {
            let molecule = molecules.codec().molecule(graph)?;
            let (text, scores) = (molecule.smiles(), vec![molecule.atoms().len() as f64]);
            Ok(Described { key: text.clone().into(), text, scores })
        };
        states.graphs().iter().map(described).collect()
    })
}

#[test]
fn training_records_what_it_draws_and_a_resumed_run_does_so_once() {
    const STEPS: usize = 10;
    let folder = Folder::new("training");
    let (whole, broken, checkpoint) = (folder.join("whole"), folder.join("broken"), folder.join("checkpoint"));
    let mut straight = trainer(3);
    Fit::new(STEPS).observe(&mut recorded(whole.clone())).run(&mut straight).unwrap();

    let mut first = trainer(3);
    let mut record = recorded(broken.clone());
    Fit::new(4).observe(&mut record).checkpoint(&checkpoint, None).unwrap().run(&mut first).unwrap();
    // Steps that no checkpoint has: what is left of a run that was killed.
    Fit::new(7).observe(&mut record).run(&mut first).unwrap();
    drop((first, record));
    let all = Filter::default();
    let last = |path: &PathBuf| RecordReader::open(path).unwrap().runs().unwrap()[0].last_step;
    assert_eq!(last(&broken), Some(7));
    let mut resumed = trainer(99);
    resumed.resume(&checkpoint).unwrap();
    Fit::new(STEPS).observe(&mut recorded(broken.clone())).run(&mut resumed).unwrap();

    let [whole, broken] = [whole, broken].map(|path| RecordReader::open(path).unwrap());
    let rows = whole.samples(&all).unwrap();
    assert_eq!(rows, broken.samples(&all).unwrap());
    assert_eq!(broken.runs().unwrap().len(), 1);
    // One row for each reward that was computed, and of replayed ones none: half of each batch, once the buffer is drawn from.
    assert_eq!(rows.len() as u64, straight.reward_calls());
    assert_eq!(rows.len(), 3 * BATCH + (STEPS - 3) * BATCH / 2);
    for row in rows {
        // Told by the reward and the text, not by the column: at most three atoms have one Kekule form.
        let molecule = Molecule::from_smiles(&row.sample.text).unwrap();
        assert!((row.sample.log_reward - (0.1 + molecule.heteroatom_share()).ln()).abs() < 1e-12);
        assert_eq!(row.sample.scores, [molecule.atoms().len() as f64]);
    }
    // Without a checkpoint to go on from it is another run of the same file.
    let path = folder.join("broken");
    Fit::new(1).observe(&mut recorded(path)).run(&mut trainer(3)).unwrap();
    assert_eq!(broken.runs().unwrap().iter().map(|run| run.last_step).collect::<Vec<_>>(), [Some(STEPS), Some(1)]);
}
