//! Tests of the code of the training step: it equals the code in the guide, its functions are short, and the
//! methods of `Trainer` are in only four files.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Returns the lines of the body of the function with this signature.
fn body<'a>(code: &'a str, signature: &str) -> Vec<&'a str> {
    let (_, after) = code.split_once(signature).unwrap();
    let (_, inside) = after.split_once("{\n").unwrap();
    inside.lines().take_while(|line| *line != "    }").collect()
}

#[test]
fn the_step_in_the_guide_is_the_trainer_s() {
    let guide = text("docs/guide/src/loop.md");
    let trainer = text("src/train/trainer/updates.rs");
    let shown = guide.split("```rust,ignore\n").nth(1).and_then(|block| block.split("```").next()).unwrap();
    let shown: Vec<&str> = shown.lines().map(str::trim).collect();
    let made: Vec<&str> = body(&trainer, "fn update_once(").into_iter().map(str::trim).collect();
    assert_eq!(shown, made);
}

#[test]
fn the_step_is_short() {
    let trainer = text("src/train/trainer/mod.rs") + &text("src/train/trainer/updates.rs");
    for function in ["pub fn step(", "fn make_step(", "fn update_once("] {
        let lines = body(&trainer, function).len();
        assert!(lines <= 25, "{function} has {lines} lines");
    }
}

#[test]
fn a_trainer_s_methods_are_in_four_files() {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if std::fs::read_to_string(&path).unwrap().lines().any(|line| {
                line.starts_with("impl<E") && line.contains("> Trainer<E>") && !line.contains(" for ")
            }) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&root().join("src"), &mut found);
    assert_eq!(found.len(), 4, "{found:?}");
}
