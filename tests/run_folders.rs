//! Tests of the folders that `reproduce --run` writes: checks before anything is written, and reading the
//! files back.

#[allow(dead_code, unreachable_pub, reason = "the examples' module, used as it is")]
#[path = "../examples/reproduce/run/folder.rs"]
mod folder;
#[allow(dead_code, unreachable_pub, reason = "the examples' module, used as it is")]
#[path = "../examples/reproduce/run/steps.rs"]
pub(crate) mod steps;
#[allow(dead_code, unreachable_pub, reason = "the examples' module, used as it is")]
#[path = "../examples/reproduce/run/task_flags.rs"]
mod task_flags;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};
use gfn::Error;
use serde_json::json;

use crate::trainers::Folder;
use folder::RunFolder;
use steps::StepRecord;
use task_flags::TaskFlags;

/// Reads the records of the first `done` steps from a file.
fn steps_before(path: &Path, done: usize) -> gfn::Result<Vec<StepRecord>> {
    steps::read_steps(path, done).map(|steps| steps.records)
}

/// A command line with several tasks, like that of `reproduce`.
#[derive(Parser, Debug)]
enum Program {
    Ring(Ring),
    Line {
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
}

#[derive(Parser, Debug)]
struct Ring {
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[arg(long)]
    lr: Option<f64>,
    #[arg(long)]
    directed: bool,
    #[arg(long)]
    only: Vec<String>,
    #[arg(long)]
    seeds: Option<u64>,
    #[arg(long)]
    run: Option<PathBuf>,
    #[arg(long)]
    resume: Option<PathBuf>,
    #[arg(long)]
    json: bool,
}

fn parse_flags(line: &str) -> TaskFlags {
    let matches = Program::command().get_matches_from(["program"].into_iter().chain(line.split_whitespace()));
    TaskFlags::from_matches(&Program::command(), &matches).unwrap()
}

#[test]
fn all_flags_are_kept_as_they_were_used() {
    let given = parse_flags("ring --lr 1e-3 --only tb --only db --run runs/a --directed");
    assert_eq!(given.task, "ring");
    let flags = json!({ "seed": 0, "lr": 0.001, "directed": true, "only": ["tb", "db"], "run": "runs/a",
        "json": false });
    assert_eq!(serde_json::Value::Object(given.flags.clone()), flags);
    // Flags describe the same run if a number is spelled differently, or if the folder or the output format
    // is another.
    assert_eq!(
        given.differences(&parse_flags("ring --lr 0.001 --only tb --only db --run b --directed --json")),
        []
    );
    let other = parse_flags("ring --seed 3 --only tb --only db --directed");
    let differences = given.differences(&other);
    assert_eq!(differences, [("lr", &json!(0.001), &json!(null)), ("seed", &json!(0), &json!(3))]);
}

#[test]
fn a_folder_takes_one_run() {
    let temporary = Folder::new("run-folder");
    let run = RunFolder::new(temporary.join("new/run"));
    let this = parse_flags("ring --lr 0.1");
    let other = parse_flags("ring --lr 0.2 --seed 1");
    run.claim(&this, None).unwrap();
    // A folder that has settings but no results, as after a refused flag, must not block another run.
    fs::create_dir(run.pictures()).unwrap();
    run.claim(&other, None).unwrap();
    assert_eq!(run.flags().unwrap(), other);
    run.describe(&other, &[("steps", json!(7))]).unwrap();
    let settings =
        serde_json::from_str::<serde_json::Value>(&fs::read_to_string(run.settings()).unwrap()).unwrap();
    assert_eq!(
        (&settings["steps"], &settings["seed"], &settings["task"]),
        (&json!(7), &json!(1), &json!("ring"))
    );

    fs::write(run.metrics(), "{\"step\":1}\n").unwrap();
    run.claim(&other, None).unwrap();
    let refused = |flags: &TaskFlags, resume: Option<PathBuf>, words: &[&str]| {
        let error = run.claim(flags, resume.as_deref()).unwrap_err();
        let message = error.to_string();
        assert!(
            matches!(error, Error::File { .. }) && words.iter().all(|word| message.contains(word)),
            "{message}"
        );
        assert!(message.contains("give a new folder"), "{message}");
    };
    refused(
        &this,
        None,
        &["another run", "`lr` is 0.2 in the folder, 0.1 in this command; `seed` is 1 in", "--resume"],
    );
    refused(&parse_flags("line"), None, &["another run: a run of the task `ring`"]);
    folder::write_json(&run.result(), &json!({ "tv": 0.5 })).unwrap();
    refused(&other, None, &["finished", "result.json"]);
    // A run may resume from its own checkpoint with other settings. Resuming from another checkpoint must be
    // refused.
    fs::create_dir(run.checkpoint()).unwrap();
    refused(&this, Some(temporary.join("new")), &["another run"]);
    refused(&parse_flags("line"), Some(run.checkpoint()), &["another run"]);
    run.claim(&this, Some(&run.checkpoint())).unwrap();
    // Before the checkpoint is known to fit, the results and settings of the earlier run must remain.
    assert!(run.result().exists() && run.flags().unwrap() == other);
    run.describe(&this, &[]).unwrap();
    assert!(!run.result().exists() && run.flags().unwrap() == this);
    refused(
        &parse_flags("ring --lr 0.1 --resume elsewhere"),
        Some("elsewhere".into()),
        &["or from another checkpoint"],
    );
    assert!(
        fs::read_dir(temporary.join("new/run"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .all(|name| name == ".lock" || !name.to_string_lossy().starts_with('.'))
    );
}

#[test]
fn a_folder_takes_the_seeds_of_one_command() {
    let temporary = Folder::new("run-seeds");
    let (all, one) = (RunFolder::new(&temporary.0), RunFolder::new(temporary.join("seed-0")));
    let three = parse_flags("ring --seeds 3");
    // A folder with settings but no results, as after a refused flag, must not block other seeds.
    all.claim_for_seeds(&parse_flags("ring --seeds 2 --lr 2")).unwrap();
    one.claim(&parse_flags("ring --lr 2"), None).unwrap();
    all.claim_for_seeds(&three).unwrap();
    one.claim(&parse_flags("ring"), None).unwrap();
    assert_eq!(all.flags().unwrap(), three);

    fs::write(one.metrics(), "{\"step\":1}\n").unwrap();
    folder::write_json(&all.result(), &json!({ "seeds": 3 })).unwrap();
    for (flags, words) in [
        ("ring --seeds 3 --seed 3", "`seed` is 0 in the folder, 3 in this command"),
        ("ring --seeds 3 --lr 0.1", "`lr` is not given in the folder, 0.1 in this command"),
        ("ring --seeds 2", "`seeds` is 3 in the folder, 2 in this command"),
    ] {
        let message = all.claim_for_seeds(&parse_flags(flags)).unwrap_err().to_string();
        assert!(message.contains(words) && message.contains("--run FOLDER/seed-N --resume"), "{message}");
    }
    let message = one.claim_for_seeds(&three).unwrap_err().to_string();
    assert!(message.contains("`seeds` is not given in the folder, 3 in this command"), "{message}");
    let message = all.claim(&parse_flags("ring"), None).unwrap_err().to_string();
    assert!(message.contains("`seeds` is 3 in the folder, not given in this command"), "{message}");
    assert!(message.contains("--run FOLDER/seed-N --resume"), "{message}");

    all.claim_for_seeds(&three).unwrap();
    assert!(all.result().exists(), "the same command keeps the result");
    let five = parse_flags("ring --seeds 5");
    all.claim_for_seeds(&five).unwrap();
    assert!(!all.result().exists() && all.flags().unwrap() == five, "seeds were added");
}

#[test]
fn two_processes_do_not_write_one_folder() {
    let temporary = Folder::new("run-locked");
    let run = RunFolder::new(temporary.join("run"));
    fs::create_dir(temporary.join("run")).unwrap();
    let other = fs::File::create(temporary.join("run").join(".lock")).unwrap();
    other.lock().unwrap();
    let message = run.claim(&parse_flags("ring"), None).unwrap_err().to_string();
    assert!(message.contains("another process is writing it"), "{message}");
    drop(other);
    run.claim(&parse_flags("ring"), None).unwrap();
}

#[test]
fn a_folder_of_other_things_is_left_alone() {
    let temporary = Folder::new("run-foreign");
    fs::write(temporary.join("thesis.tex"), "").unwrap();
    let message = RunFolder::new(&temporary.0).claim(&parse_flags("ring"), None).unwrap_err().to_string();
    assert!(message.contains("it isn't the folder of a run"), "{message}");
    assert_eq!(fs::read_dir(&temporary.0).unwrap().count(), 1);
    // A folder that would lie inside a file must be refused.
    let error =
        RunFolder::new(temporary.join("thesis.tex/run")).claim(&parse_flags("ring"), None).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("thesis.tex/run")), "{error}");
    // A folder with invalid settings must be refused.
    let run = RunFolder::new(temporary.join("broken"));
    fs::create_dir(temporary.join("broken")).unwrap();
    fs::write(run.metrics(), "").unwrap();
    for (text, problem) in
        [("{", "EOF while parsing"), ("[1]", "doesn't have the settings of a run"), ("{}", "`task`")]
    {
        fs::write(run.settings(), text).unwrap();
        let message = run.claim(&parse_flags("ring"), None).unwrap_err().to_string();
        assert!(message.contains(problem) && message.contains("settings.json"), "{message}");
    }
}

#[test]
fn steps_are_read_back_as_they_were_made() {
    let temporary = Folder::new("run-made");
    let run = RunFolder::new(temporary.join("run"));
    run.claim(&parse_flags("ring"), None).unwrap();
    assert_eq!(steps_before(&run.metrics(), 7).unwrap(), [], "nothing was made yet");
    let made = |step| StepRecord {
        n: 1,
        step,
        reward_calls: 5,
        loss: Some(0.1),
        log_z: Some(-1e-3),
        mean_len: Some(3.5),
        states: 9,
        distinct: 7,
        grad_norm: Some(2.0),
        seconds: [0.1; 4],
        metrics: [("tv".to_owned(), Some(0.3))].into(),
    };
    let made: Vec<StepRecord> = (1..=3).map(made).collect();
    let line = |step: usize| {
        json!({ "step": step, "reward_calls": 5, "loss": 0.1, "log_z": -1e-3, "mean_len": 3.5, "states": 9,
            "distinct": 7, "grad_norm": 2.0, "tv": 0.3,
            "seconds": { "sample": 0.1, "score": 0.1, "backward": 0.1, "update": 0.1 } })
    };
    let write = |lines: &[serde_json::Value], last: &str| {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(run.metrics(), lines + last).unwrap();
    };
    write(&[line(1), line(2), line(3)], "{\"step\":4,\"lo");
    assert_eq!(steps_before(&run.metrics(), 3).unwrap(), made);
    assert_eq!(steps_before(&run.metrics(), 2).unwrap(), made[..2], "the third is made again");

    // Numbers that aren't finite are written as null, and must be read back as `None`.
    let mut infinite = line(1);
    (infinite["loss"], infinite["tv"]) = (json!(null), json!(null));
    write(&[infinite], "");
    let read = steps_before(&run.metrics(), 1).unwrap();
    assert!(read[0].loss.is_none() && read[0].metrics["tv"].is_none() && read[0].log_z == Some(-1e-3));

    for (name, instead) in [
        ("step", json!(-1)),
        ("loss", json!("low")),
        ("seconds", json!({ "sample": 0.1 })),
        ("distinct", json!(0.5)),
    ] {
        let mut wrong = line(2);
        wrong[name] = instead;
        write(&[line(1), wrong], "");
        let message = steps_before(&run.metrics(), 2).unwrap_err().to_string();
        assert!(message.contains("line 2 isn't a line of metrics"), "{name}: {message}");
    }
    assert_eq!(steps_before(&run.metrics(), 1).unwrap().len(), 1, "what comes behind is written anew");
}
