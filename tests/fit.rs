//! Tests of the training loop: observers, stopping, and resumed runs that must equal uninterrupted runs.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use crate::trainers::{Folder, GridTrainer, Setting, bytes, hypergrid};
use crate::words::{self, fresh, with_flow};
use gfn::env::{Rows, VectorEnv, VectorStates};
use gfn::error::Warning;
use gfn::objective::{LogPartitionVariance, TrajectoryBalance};
use gfn::optim::Schedule;
use gfn::policy::UniformPolicy;
use gfn::run::{
    CountModes, EarlyStop, Fit, FitOutcome, Goal, Metrics, MetricsFile, OnWarning, Record, Validation,
    Warnings,
};
use gfn::train::{Checkpoint, ReplayPath, Trainer, TrainerConfig};
use gfn::{Error, Result};
use serde_json::Value;

fn trainer(seed: u64) -> GridTrainer {
    tch::set_num_threads(1);
    hypergrid(Setting::new(seed, ReplayPath::UniformBackward))
}

/// Returns `true` for points that count as modes. Such points are so frequent that they occur within a few
/// steps.
fn is_mode(points: &VectorStates) -> Vec<bool> {
    points.rows().map(|point| point.iter().sum::<u16>() % 3 == 1).collect()
}

/// Returns the lines of a metrics file, without the times, which differ between runs.
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let parse = |line| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        assert!(value.as_object_mut().unwrap().remove("seconds").is_some());
        value
    };
    text.lines().map(parse).collect()
}

/// Runs a trainer up to the step `steps` with all features of the training loop. Files are written to
/// `folder`.
fn fit(trainer: &mut GridTrainer, steps: usize, folder: &Folder) -> (FitOutcome, usize) {
    let mut modes = CountModes::new(is_mode);
    let mut validation = Validation::every(3, |trainer: &GridTrainer| {
        let mut rng = trainer.evaluation_rng();
        Ok(Metrics::from([("drawn".to_owned(), rng.uniform())]))
    })
    .unwrap();
    let mut stop = EarlyStop::new("drawn", Goal::Smaller, 50).unwrap();
    let mut metrics = MetricsFile::new(folder.join("metrics.jsonl"));
    let fit =
        Fit::new(steps).observe(&mut modes).observe(&mut validation).observe(&mut stop).observe(&mut metrics);
    let fit = fit.checkpoint(folder.join("checkpoint"), Some(4)).unwrap();
    let ended = fit.run_with_outcome(trainer).unwrap();
    (ended, modes.tracker().n_modes())
}

#[test]
fn a_resumed_run_is_the_one_that_was_never_interrupted() {
    let whole = Folder::new("fit-whole");
    let parts = Folder::new("fit-parts");
    let mut uninterrupted = trainer(1);
    uninterrupted.prefill(30).unwrap();
    let (ended, found) = fit(&mut uninterrupted, 14, &whole);
    assert_eq!((ended, found > 10), (FitOutcome::Done, true));

    let mut first = trainer(1);
    first.prefill(30).unwrap();
    fit(&mut first, 6, &parts);
    let mut resumed = trainer(2);
    resumed.resume(parts.join("checkpoint")).unwrap();
    assert_eq!(resumed.steps_done(), 6);
    let (_, found_in_parts) = fit(&mut resumed, 14, &parts);

    assert_eq!(found_in_parts, found);
    // Weights, moments, buffer, random stream and observers' states must be equal.
    assert_eq!(bytes(&parts.join("checkpoint")), bytes(&whole.join("checkpoint")));
    let expected = lines(&whole.join("metrics.jsonl"));
    let got = lines(&parts.join("metrics.jsonl"));
    assert_eq!(got.len(), 14);
    assert_eq!(got, expected);
    let steps: Vec<usize> = (1..=14).filter(|step| got[step - 1]["drawn"].is_number()).collect();
    assert_eq!(steps, [3, 6, 9, 12, 14], "measured every 3 steps and at the end");
    // A run that is finished must make no further step.
    assert_eq!(fit(&mut resumed, 14, &parts).0, FitOutcome::Done);
    assert_eq!(resumed.steps_done(), 14);
}

#[test]
fn observing_changes_nothing() {
    let folder = Folder::new("fit-observing");
    let mut watched = trainer(3);
    let mut alone = trainer(3);
    fit(&mut watched, 5, &folder);
    for _ in 0..5 {
        alone.step().unwrap();
    }
    let kept = |trainer: &GridTrainer, name: &str| {
        trainer.save(folder.join(name)).unwrap();
        let checkpoint = Checkpoint::load(folder.join(name)).unwrap();
        ["model", "adam", "replay"].map(|section| checkpoint.section(section))
    };
    let watched = kept(&watched, "watched");
    let alone = kept(&alone, "alone");
    assert!(
        alone.iter().all(|section| !section.is_empty()) && watched == alone,
        "weights, moments and buffer"
    );
}

#[test]
fn reward_calls_count_new_objects_once() {
    let mut trainer = trainer(0);
    trainer.prefill(30).unwrap();
    let mut calls = Vec::new();
    let mut keep = |trainer: &GridTrainer, record: &mut Record| {
        assert_eq!(trainer.latest().unwrap().len(), 24);
        calls.push(record.reward_calls);
        Ok(ControlFlow::Continue(()))
    };
    Fit::new(4).observe(&mut keep).run(&mut trainer).unwrap();
    // The buffer was prefilled with 30 objects. Half of each batch of 24 is replayed from the second step on,
    // and replayed objects need no reward calls.
    assert_eq!(calls, [30 + 24, 30 + 36, 30 + 48, 30 + 60]);
}

/// Tests training after the end of a learning-rate schedule that falls to 0. Such training changes nothing,
/// so there must be exactly one warning, at the first such step.
#[test]
fn training_beyond_the_end_of_a_schedule_is_warned_of() {
    let lr_scale = Schedule::Linear { from: 1.0, to: 0.0, steps: 3 };
    let config = TrainerConfig { lr_scale, ..fresh(8) };
    let mut warnings = Warnings::new(OnWarning::Keep);
    let mut trainer = words::trainer(with_flow(), Box::new(TrajectoryBalance), config).unwrap();
    Fit::new(3).warnings(&mut warnings).run(&mut trainer).unwrap();
    assert_eq!(warnings.all(), []);
    let mut seen = Vec::new();
    let mut keep = |_: &Trainer<_>, record: &mut Record| {
        seen.extend(record.warnings.clone());
        Ok(ControlFlow::Continue(()))
    };
    Fit::new(9).warnings(&mut warnings).observe(&mut keep).run(&mut trainer).unwrap();
    assert_eq!(seen, [Warning::LearnsNothing { step: 4 }]);
    assert_eq!(warnings.all(), seen);
    let text = seen[0].to_string();
    assert!(text.contains("nothing is learned") && text.contains("lr_scale"), "{text}");
    // A schedule of zero steps must be an error.
    let config = TrainerConfig { lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps: 0 }, ..fresh(8) };
    let refused =
        words::trainer(with_flow(), Box::new(TrajectoryBalance), config).map(drop).unwrap_err().to_string();
    assert!(refused.contains("at least one step"), "{refused}");
    // A constant learning rate of 0 is set on purpose, so it must cause no warning.
    let config = TrainerConfig { lr_scale: Schedule::Constant(0.0), ..fresh(8) };
    let mut untrained = words::trainer(UniformPolicy, Box::new(LogPartitionVariance), config).unwrap();
    Fit::new(1).on_warning(OnWarning::Fail).run(&mut untrained).unwrap();
}

#[test]
fn a_run_stops_early_without_improvement() {
    let mut trainer = trainer(0);
    let mut measured = Vec::new();
    let mut validation = Validation::every(2, |trainer: &GridTrainer| {
        measured.push(trainer.steps_done());
        let figure = if trainer.steps_done() <= 4 { -(trainer.steps_done() as f64) } else { 1.0 };
        Ok(Metrics::from([("figure".to_owned(), figure)]))
    })
    .unwrap();
    let mut stop = EarlyStop::new("figure", Goal::Smaller, 2).unwrap();
    let ended =
        Fit::new(50).observe(&mut validation).observe(&mut stop).run_with_outcome(&mut trainer).unwrap();
    assert_eq!((ended, trainer.steps_done(), stop.best()), (FitOutcome::Stopped, 8, Some(-4.0)));
    assert_eq!(measured, [2, 4, 6, 8]);
}

#[test]
fn an_early_stop_on_an_unmeasured_metric_is_refused() {
    let mut trainer = trainer(0);
    let mut validation =
        Validation::every(2, |_: &GridTrainer| Ok(Metrics::from([("tv".to_owned(), 0.5)]))).unwrap();
    let mut stop = EarlyStop::new("tvv", Goal::Smaller, 2).unwrap();
    let refused =
        Fit::new(5).observe(&mut validation).observe(&mut stop).run(&mut trainer).unwrap_err().to_string();
    assert!(refused.contains("`tvv`") && refused.contains("\"tv\""), "{refused}");
    assert_eq!(trainer.steps_done(), 2);
}

#[test]
fn an_error_leaves_the_last_checkpoint() {
    let folder = Folder::new("fit-error");
    let mut trainer = trainer(0);
    let mut fail = |_: &Trainer<_>, record: &mut Record| -> Result<ControlFlow<()>> {
        if record.step == 7 {
            return Err(Error::Config { setting: "this test", got: "step 7".into(), expected: "an error" });
        }
        Ok(ControlFlow::Continue(()))
    };
    let path = folder.join("checkpoint");
    let fit = Fit::new(9).observe(&mut fail).checkpoint(&path, Some(3)).unwrap();
    assert!(fit.run(&mut trainer).is_err());
    assert_eq!(Checkpoint::load(&path).unwrap().manifest().step, 6);
    let never = Fit::<VectorEnv>::new(9).checkpoint(&path, Some(0));
    assert!(matches!(never, Err(Error::Config { .. })));
    assert!(Validation::every(0, |_: &GridTrainer| Ok(Metrics::new())).is_err());
}

#[test]
fn the_latest_batch_is_the_one_that_was_trained_on() {
    let mut trainer = trainer(0);
    assert!(trainer.latest().is_none());
    let stats = trainer.step().unwrap();
    let latest = trainer.latest().unwrap();
    assert_eq!(latest.terminal_states().len(), 24);
    assert_eq!(latest.mean_len(), stats.mean_len);
}

#[test]
fn no_step_is_made_if_a_checkpoint_cannot_be_saved() {
    let folder = Folder::new("fit-nowhere");
    let file = folder.join("file");
    let other = folder.join("other");
    fs::write(&file, "").unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(other.join("notes.txt"), "mine").unwrap();
    for (path, problem) in [
        (file.join("checkpoint"), "is not a folder"),
        (file, "is not a folder"),
        (other, "holds `notes.txt` too"),
    ] {
        let mut trainer = trainer(0);
        let error = Fit::new(3).checkpoint(&path, None).unwrap().run(&mut trainer).unwrap_err();
        assert!(matches!(error, Error::File { .. }) && error.to_string().contains(problem), "{error}");
        assert_eq!(trainer.steps_done(), 0);
    }
    // `try_path` writes a folder on trial. It must leave nothing behind, and must not change an existing
    // checkpoint.
    let path = folder.join("checkpoint");
    Checkpoint::try_path(&path).unwrap();
    assert!(!path.exists());
    trainer(0).save(&path).unwrap();
    let before = bytes(&path);
    Checkpoint::try_path(&path).unwrap();
    assert_eq!(bytes(&path), before);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 3);
}

/// Tests data that a program attaches to a trainer. The data must stay in the trainer's checkpoints,
/// whatever the observers are.
#[test]
fn an_attachment_outlives_a_run_and_a_resume() {
    let folder = Folder::new("attached");
    let path = folder.join("run");
    let mut first = trainer(0);
    first
        .attach("mine", serde_json::json!({ "n": 3 }), vec![("x".into(), tch::Tensor::from_slice(&[1.5]))])
        .unwrap();
    let mut stop = EarlyStop::new("loss", Goal::Smaller, 50).unwrap();
    Fit::new(2).observe(&mut stop).checkpoint(&path, None).unwrap().run(&mut first).unwrap();
    let mut second = trainer(1);
    second.resume(&path).unwrap();
    let (state, tensors) = second.attachment("mine").unwrap();
    assert_eq!((state["n"].as_u64(), tensors[0].1.double_value(&[0])), (Some(3), 1.5));
    assert!(second.attachment("early_stop").is_some(), "the observer's is there, too");
    second.attach("mine", serde_json::Value::Null, Vec::new()).unwrap();
    assert!(second.attachment("mine").is_none());
    assert!(
        second
            .attach("a/b", serde_json::Value::Null, vec![("x".into(), tch::Tensor::from_slice(&[1.5]))])
            .is_err()
    );
}
