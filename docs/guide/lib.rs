//! The guide to `gfn`, whose chapters are in `src` (an mdBook). Each chapter is the documentation of an empty
//! module of this package, so that `cargo test --doc -p gfn-guide` compiles and runs every Rust block of the
//! guide.

#[cfg(doctest)]
mod chapters {
    #[doc = include_str!("src/introduction.md")]
    mod introduction {}
    #[doc = include_str!("src/concepts.md")]
    mod concepts {}
    #[doc = include_str!("src/first_environment.md")]
    mod first_environment {}
    #[doc = include_str!("src/action_type.md")]
    mod action_type {}
    #[doc = include_str!("src/symmetry.md")]
    mod symmetry {}
    #[doc = include_str!("src/instances.md")]
    mod instances {}
    #[doc = include_str!("src/reward.md")]
    mod reward {}
    #[doc = include_str!("src/network.md")]
    mod network {}
    #[doc = include_str!("src/objective.md")]
    mod objective {}
    #[doc = include_str!("src/vectors.md")]
    mod vectors {}
    #[doc = include_str!("src/choosing.md")]
    mod choosing {}
    #[doc = include_str!("src/molecules.md")]
    mod molecules {}
    #[doc = include_str!("src/structures.md")]
    mod structures {}
    #[doc = include_str!("src/evaluating.md")]
    mod evaluating {}
    #[doc = include_str!("src/saving.md")]
    mod saving {}
    #[doc = include_str!("src/running.md")]
    mod running {}
    #[doc = include_str!("src/machines.md")]
    mod machines {}
    #[doc = include_str!("src/python.md")]
    mod python {}
    #[doc = include_str!("src/python_rewards.md")]
    mod python_rewards {}
    #[doc = include_str!("src/python_environments.md")]
    mod python_environments {}
    #[doc = include_str!("src/python_networks.md")]
    mod python_networks {}
    #[doc = include_str!("src/python_training.md")]
    mod python_training {}
    #[doc = include_str!("src/python_molecules.md")]
    mod python_molecules {}
    #[doc = include_str!("src/python_structures.md")]
    mod python_structures {}
    #[doc = include_str!("src/torchgfn.md")]
    mod torchgfn {}
    #[doc = include_str!("src/recursionpharma.md")]
    mod recursionpharma {}
    #[doc = include_str!("src/inside.md")]
    mod inside {}
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Returns the file names of all chapters in `src`.
    fn chapters() -> Vec<String> {
        let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect()
    }

    fn text(path: &str) -> String {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
    }

    // Tests that every chapter is a module of this package. `scripts/check_links.py` checks the list of
    // chapters in SUMMARY.md, and the links.
    #[test]
    fn every_chapter_is_tested() {
        let tested = text("lib.rs");
        for name in chapters() {
            assert!(tested.contains(&format!("include_str!(\"src/{name}\")")), "{name} isn't in lib.rs");
        }
    }

    #[test]
    fn quoted_figures_are_those_of_the_table() {
        let quoted = text("src/choosing.md");
        let table = text("../objectives.md");
        let rows: Vec<&str> = quoted.lines().filter(|line| line.starts_with("| `")).collect();
        assert!(rows.len() > 5 && table.contains("Worst of all: 0.0048."));
        for row in rows {
            assert!(table.contains(row), "docs/objectives.md has no row {row}");
        }
    }
}
