//! The step that the guide shows is the step that is made.

use std::path::Path;

fn text(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

#[test]
fn the_lines_of_the_step_in_the_guide_are_those_of_the_trainer() {
    let (guide, trainer) = (text("docs/guide/src/inside.md"), text("src/train/trainer.rs"));
    let shown = guide.split("```rust,ignore\n").nth(1).and_then(|block| block.split("```").next()).unwrap();
    let (_, mut rest) = trainer.split_once("fn make_step(").unwrap();
    let lines = shown.lines().map(str::trim).filter(|line| *line != "}");
    assert_eq!(lines.clone().count(), 9);
    for line in lines {
        let place = rest.find(line).unwrap_or_else(|| panic!("`{line}` isn't in `Trainer::step`, in this order"));
        rest = &rest[place + line.len()..];
    }
}
