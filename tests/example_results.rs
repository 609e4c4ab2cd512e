//! Tests that the examples check whether their output files can be written, before they need the files.

#[allow(dead_code, unreachable_pub, reason = "the examples' module, used as it is")]
#[path = "../examples/reproduce/run/files.rs"]
mod outputs;

use std::fs;

use gfn::Error;

use crate::trainers::Folder;

#[test]
fn writable_files_are_unchanged() {
    let folder = Folder::new("tried");
    outputs::try_folder(&folder.join("new/pictures")).unwrap();
    assert_eq!(fs::read_dir(folder.join("new/pictures")).unwrap().count(), 0);
    outputs::try_file(&folder.join("of/metrics.jsonl")).unwrap();
    assert_eq!(fs::read_dir(folder.join("of")).unwrap().count(), 0);
    let old = folder.join("old.jsonl");
    fs::write(&old, "kept").unwrap();
    outputs::try_file(&old).unwrap();
    assert_eq!(fs::read_to_string(&old).unwrap(), "kept");
}

/// Tests a pipe without a reader. Opening it would block forever, so the check must not open it.
#[test]
#[cfg(unix)]
fn a_pipe_is_left_alone() {
    let folder = Folder::new("pipe");
    let pipe = folder.join("metrics.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    outputs::try_file(&pipe).unwrap();
    assert!(pipe.exists());
}

#[test]
fn unwritable_files_are_named() {
    let folder = Folder::new("untried");
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    // Three paths can't be written: a folder inside a file, a file inside a file, and a folder that is
    // given as a file.
    let refused = |tried: gfn::Result<()>, name: &str| {
        assert!(matches!(&tried, Err(Error::Io { path, .. }) if path.ends_with(name)), "{tried:?}");
    };
    refused(outputs::try_folder(&file.join("pictures")), "file/pictures");
    refused(outputs::try_file(&file.join("metrics.jsonl")), "file");
    refused(outputs::try_file(&folder.0), folder.0.file_name().unwrap().to_str().unwrap());
}
