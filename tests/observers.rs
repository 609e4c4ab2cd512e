//! Tests of observers: several observers in one run, their state in checkpoints, the best checkpoint, and
//! repeated names.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use crate::trainers::{Folder, GridTrainer, Setting, bytes, hypergrid};
use gfn::env::VectorStates;
use gfn::run::{
    CountModes, EarlyStop, Fit, FitOutcome, Goal, KeepBest, Metrics, MetricsFile, Record, Validation,
};
use gfn::train::{Checkpoint, ReplayPath};
use gfn::{Error, Result};
use serde_json::Value;

fn trainer(seed: u64) -> GridTrainer {
    tch::set_num_threads(1);
    hypergrid(Setting::new(seed, ReplayPath::UniformBackward))
}

fn is_mode(points: &VectorStates) -> Vec<bool> {
    points.rows().map(|point| point.iter().sum::<u16>() % 3 == 1).collect()
}

/// Builds an observer that measures a random number at every `every`-th step. Runs with the same seed get the
/// same numbers.
fn random_metric(every: usize) -> Validation<impl FnMut(&GridTrainer) -> Result<Metrics>> {
    let measure =
        |trainer: &GridTrainer| Ok(Metrics::from([("drawn".to_owned(), trainer.evaluation_rng().uniform())]));
    Validation::every(every, measure).unwrap()
}

fn constant(name: &'static str, every: usize) -> Validation<impl FnMut(&GridTrainer) -> Result<Metrics>> {
    Validation::every(every, move |_: &GridTrainer| Ok(Metrics::from([(name.to_owned(), 0.5)]))).unwrap()
}

fn go_on(_: &GridTrainer, _: &mut Record) -> Result<ControlFlow<()>> {
    Ok(ControlFlow::Continue(()))
}

/// Runs up to step `steps`. The first observer requests a checkpoint at step 7, before the later observers
/// see this step. Returns the number of modes found.
fn saving_at_7(trainer: &mut GridTrainer, steps: usize, folder: &Folder) -> usize {
    let requested = folder.join("requested");
    let mut save = |_: &GridTrainer, record: &mut Record| {
        if record.step == 7 {
            record.save_checkpoint(&requested);
        }
        Ok(ControlFlow::Continue(()))
    };
    let mut modes = CountModes::new(is_mode);
    let mut validation = random_metric(2);
    let mut stop = EarlyStop::new("drawn", Goal::Larger, 50).unwrap();
    let fit =
        Fit::new(steps).observe(&mut save).observe(&mut modes).observe(&mut validation).observe(&mut stop);
    fit.checkpoint(folder.join("end"), None).unwrap().run(trainer).unwrap();
    modes.tracker().n_modes()
}

#[test]
fn a_checkpoint_that_an_observer_saves_holds_what_observers_keep() {
    let whole = Folder::new("saved-whole");
    let short = Folder::new("saved-short");
    let resumed = Folder::new("saved-resumed");
    let found = saving_at_7(&mut trainer(1), 14, &whole);
    let found_by_7 = saving_at_7(&mut trainer(1), 7, &short);
    assert!(0 < found_by_7 && found_by_7 < found, "{found_by_7} of {found}");
    assert_eq!(bytes(&whole.join("requested")), bytes(&short.join("end")));
    let mut again = trainer(2);
    again.resume(whole.join("requested")).unwrap();
    assert_eq!(saving_at_7(&mut again, 14, &resumed), found);
    assert_eq!(bytes(&resumed.join("end")), bytes(&whole.join("end")));
}

#[test]
fn a_run_that_goes_on_beyond_its_planned_end_is_the_longer_one() {
    let whole = Folder::new("extended-whole");
    let parts = Folder::new("extended-parts");
    saving_at_7(&mut trainer(1), 12, &whole);
    let mut extended = trainer(1);
    // The planned end of the first run is step 5. The validation measures at this step although it isn't due.
    // Observers must not count this measurement, because a run of 12 steps doesn't make it.
    saving_at_7(&mut extended, 5, &parts);
    saving_at_7(&mut extended, 12, &parts);
    assert_eq!(bytes(&parts.join("end")), bytes(&whole.join("end")));
}

#[test]
fn after_a_run_that_broke_off_a_trainer_saves_at_once() {
    let folder = Folder::new("broken-off");
    for panics in [false, true] {
        let mut trainer = trainer(1);
        let mut fail = |_: &GridTrainer, _: &mut Record| -> Result<ControlFlow<()>> {
            assert!(!panics, "in the middle of a step");
            Err(Error::Config { setting: "this test", got: "a step".into(), expected: "an error" })
        };
        let run = std::panic::AssertUnwindSafe(|| Fit::new(3).observe(&mut fail).run(&mut trainer).is_err());
        assert_eq!(std::panic::catch_unwind(run).is_err(), panics);
        let path = folder.join(&format!("run-{panics}"));
        trainer.save(&path).unwrap();
        assert_eq!(Checkpoint::load(&path).unwrap().manifest().step, 1);
    }
}

/// Runs up to step `steps` and keeps the best checkpoint for each of two metrics. Returns the value and the
/// step of each best checkpoint, and the metrics of all steps.
fn keep_best(
    trainer: &mut GridTrainer,
    steps: usize,
    folder: &Folder,
) -> ([Option<(f64, usize)>; 2], Vec<Record>) {
    let mut validation = random_metric(2);
    let mut drawn = KeepBest::new("drawn", Goal::Larger, folder.join("drawn"));
    let mut loss = KeepBest::new("loss", Goal::Smaller, folder.join("loss")).with_name("least_loss");
    let mut records = Vec::new();
    let mut watch = |_: &GridTrainer, record: &mut Record| {
        records.push(record.clone());
        Ok(ControlFlow::Continue(()))
    };
    let fit =
        Fit::new(steps).observe(&mut validation).observe(&mut drawn).observe(&mut loss).observe(&mut watch);
    fit.checkpoint(folder.join("end"), None).unwrap().run(trainer).unwrap();
    ([drawn.best(), loss.best()], records)
}

#[test]
fn the_best_checkpoint_is_kept_through_a_resume() {
    let whole = Folder::new("best-whole");
    let parts = Folder::new("best-parts");
    let (best, records) = keep_best(&mut trainer(1), 16, &whole);
    let least = |of: &dyn Fn(&Record) -> Option<f64>| {
        let figures = records.iter().filter_map(|record| Some((of(record)?, record.step)));
        figures.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
    };
    let drawn = least(&|record| Some(-record.figure("drawn")?));
    let loss = least(&|record| record.figure("loss"));
    assert_eq!(best, [Some((-drawn.0, drawn.1)), Some(loss)]);

    let mut first = trainer(1);
    keep_best(&mut first, 8, &parts);
    let mut resumed = trainer(2);
    resumed.resume(parts.join("end")).unwrap();
    assert_eq!(keep_best(&mut resumed, 16, &parts).0, best);
    for (name, (_, step)) in ["drawn", "loss"].into_iter().zip(best.map(Option::unwrap)) {
        assert_eq!(bytes(&parts.join(name)), bytes(&whole.join(name)), "{name}");
        // The best checkpoint must be complete, so that a run can resume from it.
        let mut from = trainer(3);
        from.resume(whole.join(name)).unwrap();
        assert_eq!(from.steps_done(), step, "{name}");
    }
    // If the folder of the best checkpoint was removed, the observer must look for a new best one, so that a
    // checkpoint exists at the end.
    fs::remove_dir_all(parts.join("drawn")).unwrap();
    let mut resumed = trainer(2);
    resumed.resume(parts.join("end")).unwrap();
    let (best, _) = keep_best(&mut resumed, 20, &parts);
    assert_eq!(Checkpoint::load(parts.join("drawn")).unwrap().manifest().step as usize, best[0].unwrap().1);
}

fn check_refused<T: std::fmt::Debug>(result: Result<T>, words: &[&str]) {
    match result {
        Err(error @ (Error::Config { .. } | Error::File { .. })) => {
            let message = error.to_string();
            assert!(words.iter().all(|word| message.contains(word)), "{message}");
        }
        other => panic!("{words:?}: {other:?}"),
    }
}

#[test]
fn the_best_has_a_separate_folder() {
    let folder = Folder::new("best-folder");
    let path = folder.join("run");
    let mut best = KeepBest::new("loss", Goal::Smaller, &path);
    let fit = Fit::new(3).observe(&mut best).checkpoint(&path, None).unwrap();
    check_refused(fit.run(&mut trainer(0)), &["run's own checkpoint", "a separate folder"]);
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("notes.txt"), "mine").unwrap();
    let mut none = trainer(0);
    check_refused(
        Fit::new(3).observe(&mut KeepBest::new("loss", Goal::Smaller, &path)).run(&mut none),
        &["notes.txt"],
    );
    assert_eq!(none.steps_done(), 0, "found out before the first step");
    let missing = KeepBest::new("tvv", Goal::Smaller, folder.join("best"));
    check_refused(
        Fit::new(3).observe(&mut constant("tv", 1)).observe(&mut missing.clone()).run(&mut none),
        &["`tvv`", "tv"],
    );
}

#[test]
fn a_run_may_have_several_of_a_kind() {
    let mut trainer = trainer(0);
    let mut first = go_on;
    let mut second = go_on;
    let mut tv = constant("tv", 2);
    let mut drawn = random_metric(3);
    let mut stops = ["tv", "drawn", "loss"]
        .map(|metric| EarlyStop::new(metric, Goal::Smaller, 50).unwrap().with_name(metric));
    let mut modes = [CountModes::new(is_mode), CountModes::new(is_mode).with_name("again")];
    let mut found = Vec::new();
    let mut watch = |_: &GridTrainer, record: &mut Record| {
        found.push((record.metrics["modes_found"], record.metrics["again_found"]));
        Ok(ControlFlow::Continue(()))
    };
    let mut fit = Fit::new(6).observe(&mut first).observe(&mut second).observe(&mut tv).observe(&mut drawn);
    for stop in &mut stops {
        fit = fit.observe(stop);
    }
    for counted in &mut modes {
        fit = fit.observe(counted);
    }
    assert_eq!(fit.observe(&mut watch).run_with_outcome(&mut trainer).unwrap(), FitOutcome::Done);
    assert!(stops.iter().all(|stop| stop.best().is_some()), "{stops:?}");
    assert!(found.len() == 6 && found.iter().all(|(first, again)| first == again));
}

#[test]
fn duplicate_names_are_refused_before_the_first_step() {
    let mut trainer = trainer(0);
    let [mut first, mut second] =
        ["tv", "loss"].map(|metric| EarlyStop::new(metric, Goal::Smaller, 5).unwrap());
    let fit = Fit::new(3).observe(&mut first).observe(&mut second);
    check_refused(fit.run(&mut trainer), &["`early_stop`", "`with_name`"]);
    assert_eq!(trainer.steps_done(), 0);
    let fit = Fit::new(3);
    check_refused(
        fit.observe(&mut constant("tv", 1)).observe(&mut constant("tv", 2)).run(&mut trainer),
        &["`tv`"],
    );
}

/// Checks a metric that comes from the less frequent of two validations. An observer that needs this metric
/// must not refuse it at a step at which only the other validation is due.
#[test]
fn a_metric_may_be_that_of_a_rarer_validation() {
    let run = |metric: &str| {
        let mut trainer = trainer(0);
        let mut stop = EarlyStop::new(metric, Goal::Smaller, 50).unwrap();
        let mut often = constant("tv", 1);
        let mut rarely = constant("jsd", 3);
        let fit = Fit::new(8).observe(&mut often).observe(&mut rarely).observe(&mut stop);
        fit.run(&mut trainer).map(|_| stop.best()).map_err(|error| (error.to_string(), trainer.steps_done()))
    };
    assert_eq!(run("jsd").unwrap(), Some(0.5));
    let (message, step) = run("jsdd").unwrap_err();
    assert!(message.contains("`jsdd`") && step == 3, "{step}: {message}");
}

#[test]
fn a_metric_has_no_name_that_a_line_has_already() {
    for name in ["step", "reward_calls", "loss", "seconds", "seconds/update"] {
        let folder = Folder::new(&format!("metric-{}", name.replace('/', "-")));
        let path = folder.join("metrics.jsonl");
        let mut trainer = trainer(0);
        let mut validation = constant(name, 2);
        let mut lines = MetricsFile::new(&path);
        let fit = Fit::new(5).observe(&mut validation).observe(&mut lines);
        check_refused(fit.run(&mut trainer), &[&format!("`{name}`"), "a name that no value of the step"]);
        // A later run must append its lines to a file that an earlier run has written.
        let mut lines = MetricsFile::new(&path);
        Fit::new(5).observe(&mut lines).run(&mut trainer).unwrap();
        assert_eq!(steps_of(&path), [1, 3, 4, 5], "the step that was refused has no line");
    }
}

/// Checks that an interrupted and resumed run writes the same lines as an uninterrupted run.
#[test]
fn a_resumed_run_leaves_the_lines_of_a_whole_one() {
    let folder = Folder::new("metrics-resumed");
    let run = |trainer: &mut GridTrainer, stop: usize, name: &str| {
        let mut cut = |_: &GridTrainer, record: &mut Record| match record.step == stop {
            true => Ok(ControlFlow::Break(())),
            false => Ok(ControlFlow::Continue(())),
        };
        let mut often = random_metric(2);
        let mut rarely = constant("tv, exact", 5);
        let mut lines = MetricsFile::new(folder.join(&format!("{name}.jsonl")));
        let fit = Fit::new(12).observe(&mut often).observe(&mut rarely).observe(&mut lines);
        fit.observe(&mut cut).checkpoint(folder.join(name), Some(4)).unwrap().run(trainer).unwrap();
    };
    run(&mut trainer(0), 12, "whole");
    run(&mut trainer(0), 7, "halves");
    let mut again = trainer(1);
    again.resume(folder.join("halves")).unwrap();
    run(&mut again, 12, "halves");
    let read = |name: &str| -> Vec<BTreeMap<String, Value>> {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let mut lines: Vec<BTreeMap<String, Value>> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for line in &mut lines {
            line.retain(|name, _| name != "seconds");
        }
        lines
    };
    let whole = read("whole.jsonl");
    assert_eq!(whole, read("halves.jsonl"));
    let numbers: usize =
        whole.iter().map(|line| line.values().filter(|value| value.is_number()).count()).sum();
    assert_eq!((whole.len(), numbers), (12, 12 * 8 + 6 + 3), "lines, and numbers: two metrics at some steps");
}

fn steps_of(path: &Path) -> Vec<u64> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["step"].as_u64().unwrap()).collect()
}

#[test]
fn a_start_that_fails_loses_nothing_that_observers_keep() {
    let folder = Folder::new("failed-start");
    let path = folder.join("run");
    let mut modes = CountModes::new(is_mode);
    Fit::new(5).observe(&mut modes).checkpoint(&path, None).unwrap().run(&mut trainer(0)).unwrap();
    let mut resumed = trainer(1);
    resumed.resume(&path).unwrap();
    let mut nowhere = MetricsFile::new(folder.join("no/such/folder.jsonl"));
    let fit = Fit::new(6).observe(&mut nowhere);
    assert!(matches!(fit.run(&mut resumed), Err(Error::Io { .. })));
    let mut again = CountModes::new(is_mode);
    Fit::new(5).observe(&mut again).run(&mut resumed).unwrap();
    assert!(again.tracker().n_modes() > 0);
    assert_eq!(again.tracker(), modes.tracker());
}

#[test]
fn an_observer_that_keeps_tensors_has_a_name_that_divides_no_section() {
    let mut modes = CountModes::new(is_mode).with_name("a/b");
    check_refused(Fit::new(1).observe(&mut modes).run(&mut trainer(0)), &["`a/b`", "without `/`"]);
}

/// Checks that devices and pipes are never read: a device may have no end, and reading a pipe would block.
#[cfg(target_os = "linux")]
#[test]
fn lines_may_go_to_devices_and_pipes() {
    let folder = Folder::new("lines-devices");
    let run = |path: &Path| {
        let mut lines = MetricsFile::new(path);
        let fit = Fit::new(2).observe(&mut lines).checkpoint(folder.join("run"), None).unwrap();
        fit.run_with_outcome(&mut trainer(1))
    };
    assert_eq!(run(Path::new("/dev/null")).unwrap(), FitOutcome::Done);
    let error = run(Path::new("/dev/full")).unwrap_err();
    assert!(matches!(&error, Error::Io { .. }) && error.to_string().contains("/dev/full"), "{error}");
}
