//! Tests of the layout of the library. The modules and folders at the top of `src` are called rooms here;
//! their imports point in one direction. Files and folders must be small enough to be read at once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The rooms of `src` (its top-level modules and folders), from the lowest to the highest. A room may import
/// from the rooms before it in this list, and from no other.
const ROOMS: [&str; 27] = [
    "direction",
    "error",
    "rng",
    "parallel",
    "runtime",
    "group",
    "tensor",
    "io",
    "rows",
    "distribution",
    "env",
    "condition",
    "graph",
    "quantity",
    "nn",
    "policy",
    "rollout",
    "objective",
    "replay",
    "optim",
    "metrics",
    "contract",
    "train",
    "run",
    "examples",
    "experiment",
    "prelude",
];

/// The largest number of lines of code of each room (top-level module or folder) of `src`, counted by
/// `scripts/count_lines.py`, in the order of [`ROOMS`]. The description of a change that raises a number must
/// say what the change is good for.
const ROOM_CAPS: [(&str, u64); 27] = [
    ("direction", 22),
    ("error", 420),
    ("rng", 48),
    ("parallel", 157),
    ("runtime", 375),
    ("group", 159),
    ("tensor", 250),
    ("io", 356),
    ("rows", 360),
    ("distribution", 872),
    ("env", 1_544),
    ("condition", 91),
    ("graph", 5_231),
    ("quantity", 269),
    ("nn", 5_010),
    ("policy", 1_841),
    ("rollout", 1_867),
    ("objective", 2_496),
    ("replay", 986),
    ("optim", 789),
    ("metrics", 1_111),
    ("contract", 1_449),
    ("train", 3_202),
    ("run", 1_734),
    ("examples", 147),
    ("experiment", 242),
    ("prelude", 32),
];
/// The largest number of lines of code of all packages together.
const MAX_CODE: u64 = 76_970;
/// The largest number of lines of code of the core, the package `gfn`.
const MAX_CORE: u64 = 31_094;
/// The largest number of names that the core exports.
const MAX_EXPORTED: u64 = 331;
/// The largest number of tokens, which are words and punctuation characters, in the code of all packages.
/// Writing the same code in fewer lines doesn't reduce this number.
const MAX_TOKENS: u64 = 865_936;

/// The largest number of lines of a file that lies outside folders named `tests`.
const MAX_LINES: usize = 400;
/// The largest number of files of a folder of `src` or of `examples/reproduce`.
const MAX_FILES: usize = 13;
/// The number of lines that every example other than `reproduce` must stay below, without blank lines and
/// comments.
const MAX_EXAMPLE_LINES: usize = 80;

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the root of the repository, in which the folder of these tests lies.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn src() -> PathBuf {
    root().join("src")
}

/// Returns the room to which a file of `src` belongs: the name of its folder directly below `src`, or the
/// file's own name if there is no such folder.
fn room_of(path: &Path) -> String {
    let inside = path.strip_prefix(src()).unwrap();
    inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned()
}

/// Returns the rooms (top-level modules) that code names in paths that begin with `crate::`. Comments and
/// tests aren't searched.
fn imports(code: &str) -> BTreeSet<String> {
    let code = code.split("#[cfg(test)]\nmod tests").next().unwrap();
    let lines = code.lines().map(|line| line.split("//").next().unwrap());
    let code: String = lines.flat_map(|line| [line, " "]).collect();
    let mut rooms = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        for path in first_names(after) {
            rooms.insert(match path.as_str() {
                "Error" | "Result" => "error".to_owned(),
                "Rng" => "rng".to_owned(),
                _ => path,
            });
        }
    }
    rooms
}

/// Returns the first name of a path such as `env::Rows`, or the first name of each member of a list such as
/// `{Error, env::{Env, Rows}}`.
fn first_names(after: &str) -> Vec<String> {
    let name =
        |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(list) = after.strip_prefix('{') else { return vec![name(after)] };
    let mut depth = 0;
    let mut names = Vec::new();
    let mut start = 0;
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' | ',' if depth == 0 => {
                names.push(name(&list[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Returns the rooms (top-level modules) that `code`, the text of a file of `room`, imports although they
/// come after `room` in [`ROOMS`]. A room that isn't in the list counts as the highest.
fn upward(room: &str, code: &str) -> Vec<String> {
    let floor = |name: &str| ROOMS.iter().position(|room| *room == name).unwrap_or(ROOMS.len());
    imports(code).into_iter().filter(|other| other != room && floor(other) >= floor(room)).collect()
}

#[test]
fn no_room_imports_from_one_above_it() {
    let mut offences = Vec::new();
    for path in sources(&src()) {
        let room = room_of(&path);
        if room == "lib" {
            continue;
        }
        assert!(
            ROOMS.contains(&room.as_str()),
            "{room} is no listed room: say in this test what it may import"
        );
        let found = upward(&room, &fs::read_to_string(&path).unwrap());
        offences.extend(found.into_iter().map(|other| format!("{}: {room} imports {other}", path.display())));
    }
    assert!(offences.is_empty(), "{offences:#?}");
}

#[test]
fn an_import_from_above_is_found() {
    assert_eq!(upward("env", "use crate::{Error, Result, policy::{Evaluation, Policy}};"), ["policy"]);
    assert_eq!(upward("env", "use crate::env::Rows;\nfn f() -> crate::train::Trainer {}"), ["train"]);
    assert_eq!(upward("graph", "use crate::attic::Thing;"), ["attic"]);
    assert!(upward("train", "use crate::{Rng, env::{Env, Rows}, nn};").is_empty());
    assert!(
        upward(
            "env",
            "/// [`Trainer`](crate::train::Trainer)\n#[cfg(test)]\nmod tests { use crate::train::X; }"
        )
        .is_empty()
    );
}

#[test]
fn files_and_folders_can_be_read_in_one_sitting() {
    let mut offences = Vec::new();
    for package in ["src", "gym", "judge", "extras", "examples"] {
        let files = sources(&root().join(package));
        for path in files.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "tests")) {
            let lines = fs::read_to_string(path).unwrap().lines().count();
            if lines > MAX_LINES {
                offences.push(format!("{} has {lines} lines", path.display()));
            }
        }
    }
    let reproduce = root().join("examples/reproduce");
    let files = [src(), reproduce].into_iter().flat_map(|folder| sources(&folder));
    let folders: BTreeSet<PathBuf> = files.filter_map(|path| path.parent().map(Path::to_owned)).collect();
    for folder in folders.iter().filter(|folder| **folder != src()) {
        let files = fs::read_dir(folder).unwrap().count();
        if files > MAX_FILES {
            offences.push(format!("{} has {files} files", folder.display()));
        }
    }
    assert!(offences.is_empty(), "{offences:#?}");
}

#[test]
fn rooms_stay_small() {
    let counted =
        Command::new("python3").arg(root().join("scripts/count_lines.py")).arg("--json").output().unwrap();
    assert!(counted.status.success(), "{}", String::from_utf8_lossy(&counted.stderr));
    let counted: serde_json::Value = serde_json::from_slice(&counted.stdout).unwrap();
    let mut offences = Vec::new();
    let mut compare = |name: &str, lines: &serde_json::Value, cap: u64| {
        let lines = lines.as_u64().unwrap();
        if lines > cap {
            offences.push(format!("{name}: {lines}, at most {cap}"));
        }
    };
    assert_eq!(ROOM_CAPS.map(|(room, _)| room), ROOMS);
    for (room, cap) in ROOM_CAPS {
        compare(room, &counted["rooms"][room], cap);
    }
    compare("all packages", &counted["total"], MAX_CODE);
    compare("the core", &counted["packages"]["core"], MAX_CORE);
    compare("names that the core exports", &counted["exported"], MAX_EXPORTED);
    compare("tokens of all packages", &counted["total_tokens"], MAX_TOKENS);
    assert!(offences.is_empty(), "{offences:#?}");
}

/// Checks that every example is short and has no module of its own, so that it can be read from top to
/// bottom.
#[test]
fn examples_are_whole_and_short() {
    let entries = fs::read_dir(root().join("examples")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let examples: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "rs")).collect();
    assert!(!examples.is_empty());
    for path in examples {
        let code = fs::read_to_string(&path).unwrap();
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let lines = code.lines().filter(is_code).count();
        assert!(lines < MAX_EXAMPLE_LINES, "{} has {lines} lines", path.display());
        assert!(!code.lines().any(|line| line.starts_with("mod ")), "{} has a module", path.display());
    }
}

/// Checks that readers can copy the code of the guide and of the examples. The code must name tch in a way
/// that works in a crate that depends only on gfn. Lines that the guide hides must not comment out lines that
/// it shows.
#[test]
fn guide_and_examples_can_be_copied() {
    let of = |folder: &str, extension: &str| {
        let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|e| e == extension)).collect::<Vec<_>>()
    };
    let chapters = of("docs/guide/src", "md");
    let examples = of("examples", "rs");
    assert!(!chapters.is_empty() && !examples.is_empty());
    for path in chapters.iter().chain(&examples) {
        let text = fs::read_to_string(path).unwrap();
        assert!(!text.contains("\n# /*\n"), "{}: hidden lines comment out what is shown", path.display());
        let imported = text.lines().any(|line| line.starts_with("use gfn::") && line.ends_with(", tch};"));
        let bare = text.replace("gfn::tch::", "").contains("tch::");
        assert!(imported || !bare, "{}: `tch::` in place of `gfn::tch::`", path.display());
    }
}
