//! Tests of rules of style that a program can check: a parameter is a name instead of a tuple pattern, a
//! condition is tested by `if` instead of by `match`, documentation opens with a noun or a verb, and no name
//! is a bare participle or pronoun.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders whose code is checked, except for folders `tests` inside them.
const FOLDERS: [&str; 8] = ["src", "gym", "plot", "judge", "extras", "dist", "python", "examples"];
/// The folders whose documentation comments are checked, including folders `tests` inside them.
const COMMENTED: [&str; 12] = [
    "src", "gym", "plot", "judge", "extras", "dist", "python", "examples", "benches", "tests", "scripts",
    "docs",
];
/// The largest share of documentation comments, in percent, that may open with one of the words in
/// [`HEADLESS`].
const MAX_HEADLESS_PERCENT: f64 = 1.0;
/// First words of a sentence whose subject comes late or is missing.
const HEADLESS: &str = "what whatever whether how who whoever whom whose which where when why those these \
    that this of by so as none one some both beside else nobody then also it they them others other in to \
    from for with under before after at on not without behind same per between";
/// Participles and pronouns that don't describe a type, a field, a function or a module, if they are its
/// whole name.
const BARE_NAMES: &str = "of asked seen own elsewhere given made found kept drawn told other others wanted \
    facts sight fits looked called rest one ones some those these it them same none held stored taken used \
    known gone said shown sent shared noted named raised described built written spent lost met moved listed \
    counted chosen joined merged cached marked scored judged examined restored visited passed ended begun \
    what who which where";

/// The largest number of columns that a line may have. Rows of tables in comments may have more.
const MAX_COLUMNS: usize = 110;

/// Returns `true` for a folder that cargo builds into.
fn is_build_folder(path: &Path) -> bool {
    path.join("CACHEDIR.TAG").exists()
}

/// Lists the Rust files of a folder, without its tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") && !is_build_folder(&path) {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Lists the Rust and Python files of a folder, with its tests.
fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() && !is_build_folder(&path) {
            found.extend(all_files(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "rs" || extension == "py" || extension == "pyi")
        {
            found.push(path);
        }
    }
    found
}

/// Lists the violations of a rule in all files. `offends` checks one file, and returns the line and a
/// description of each violation.
fn offences(offends: fn(&str) -> Vec<(usize, String)>) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for path in FOLDERS.iter().flat_map(|folder| files(&root.join(folder))) {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let path = path.strip_prefix(root).unwrap().display().to_string();
        found.extend(offends(code).into_iter().map(|(line, what)| format!("{path}:{line}: {what}")));
    }
    found
}

/// Returns the number of the line that contains the byte with index `at`. The first line has the number 1.
fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// Returns the text between the bracket at the beginning of `code` and its closing bracket.
fn bracketed(code: &str) -> &str {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &code[1..at];
        }
    }
    ""
}

/// Splits a list of parameters at its commas, except for commas inside of brackets.
fn parameters(list: &str) -> Vec<&str> {
    let mut depth = 0;
    let mut start = 0;
    let mut parts = Vec::new();
    let mut before = ' ';
    for (at, c) in list.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if before != '-' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    parts.push(list[start..].trim());
    parts
}

/// Lists the functions that have a tuple pattern as a parameter, such as `(a, b): (A, B)`.
fn tuple_parameters(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let own_word = code[..at].chars().next_back().is_none_or(|c| c == ' ' || c == '\n');
        let line = code[..at].rsplit('\n').next().unwrap();
        if !own_word || line.contains("//") {
            continue;
        }
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        // Generic parameters may contain round brackets, such as `F: Fn(&T)`. The search skips them.
        let mut depth = 0;
        let mut before = ' ';
        let open = code[at..].char_indices().find(|&(_, c)| {
            match c {
                '<' => depth += 1,
                '>' if before != '-' => depth -= 1,
                _ => {}
            }
            before = c;
            c == '(' && depth == 0
        });
        let Some((open, _)) = open else { continue };
        let taken_apart = |part: &&str| part.trim_start_matches(['&', ' ']).starts_with('(');
        if !name.is_empty() && parameters(bracketed(&code[at + open..])).iter().any(taken_apart) {
            found.push((
                line_of(code, at),
                format!("`{name}` takes a tuple apart: give its parts names of their own"),
            ));
        }
    }
    found
}

/// Lists each `let` with a tuple pattern and a tuple as its value, such as `let (a, b) = (1, 2);`.
fn tuple_lets(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("let (") {
        let is_comment = code[..at].rsplit('\n').next().unwrap().contains("//");
        let names = bracketed(&code[at + 4..]);
        let value = code[at + 4 + names.len() + 2..].trim_start();
        let Some(value) = value.strip_prefix('=').map(str::trim_start) else { continue };
        if is_comment || !value.starts_with('(') || names.contains(['(', '[']) {
            continue;
        }
        if value[bracketed(value).len() + 2..].starts_with(';') {
            found.push((line_of(code, at), format!("`let ({names}) = (..)`: write a `let` per name")));
        }
    }
    found
}

/// Lists the `match` arms whose pattern is `true` or `false`.
fn matched_conditions(code: &str) -> Vec<(usize, String)> {
    let arm = |line: &str| {
        let line = line.trim_start();
        ["true", "false"].iter().any(|word| {
            line.strip_prefix(word).is_some_and(|rest| rest.starts_with(" =>") || rest.starts_with(" if "))
        })
    };
    let lines = code.lines().enumerate().filter(|(_, line)| arm(line));
    lines.map(|(at, _)| (at + 1, "`match` over a condition: write `if`".to_owned())).collect()
}

/// Returns the first line of each documentation comment or Python docstring, with its number.
fn openings<'a>(path: &Path, text: &'a str) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    let is_python = path.extension().is_some_and(|extension| extension != "rs");
    let mut is_inside = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if is_python {
            let marks = line.matches("\"\"\"").count();
            if let Some(opening) = line.strip_prefix("\"\"\"").filter(|_| !is_inside) {
                found.push((at + 1, opening));
            }
            is_inside ^= marks % 2 == 1;
            continue;
        }
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if let Some(comment) = comment.filter(|_| !is_inside) {
            found.push((at + 1, comment.trim_start()));
        }
        is_inside = comment.is_some();
    }
    found
}

/// The numbers of the lines with more than [`MAX_COLUMNS`] columns, without rows of tables in comments.
fn long_lines(text: &str) -> Vec<usize> {
    let is_row = |line: &str| line.trim_start().trim_start_matches(['/', '!']).starts_with(" |");
    let is_long = |line: &str| line.chars().count() > MAX_COLUMNS && !is_row(line);
    text.lines().enumerate().filter(|(_, line)| is_long(line)).map(|(at, _)| at + 1).collect()
}

/// Returns `true` for an opening whose subject comes late or is missing.
fn is_headless(opening: &str) -> bool {
    let word = opening.trim_start_matches(['(', '*']).split(|c: char| !c.is_alphabetic()).next().unwrap();
    HEADLESS.split_whitespace().any(|headless| word.eq_ignore_ascii_case(headless))
}

/// Lists the types, functions, modules and fields whose whole name is a participle or a pronoun.
fn bare_names(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_struct = false;
    for (at, line) in code.lines().enumerate() {
        let item = line.trim_start();
        let item =
            item.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")).map_or(item, |(_, rest)| rest);
        let item = item.strip_prefix("pub ").unwrap_or(item);
        let item = item.strip_prefix("const ").unwrap_or(item);
        let is_item = ["fn ", "struct ", "enum ", "trait ", "type ", "mod "]
            .iter()
            .find_map(|kind| item.strip_prefix(kind));
        let name = match is_item {
            Some(rest) => rest.split(|c: char| !c.is_alphanumeric() && c != '_').next(),
            None if is_struct => item.split_once(": ").map(|(name, _)| name),
            None => None,
        };
        is_struct =
            if item.starts_with("struct ") { line.ends_with('{') } else { is_struct && !line.ends_with('}') };
        let Some(name) = name else { continue };
        if BARE_NAMES.split_whitespace().any(|bare| name.eq_ignore_ascii_case(bare)) {
            found.push((at + 1, format!("`{name}` is a bare participle or pronoun: name the thing")));
        }
    }
    found
}

#[test]
fn parameters_have_names() {
    let found = offences(tuple_parameters);
    assert!(found.is_empty(), "{}: {found:#?}", found.len());
}

#[test]
fn tuples_are_taken_apart_only_if_a_function_returns_them() {
    let found = offences(tuple_lets);
    assert!(found.is_empty(), "{}: {found:#?}", found.len());
}

#[test]
fn lines_fit_the_columns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut long = Vec::new();
    for path in COMMENTED.iter().flat_map(|folder| all_files(&root.join(folder))) {
        let text = fs::read_to_string(&path).unwrap();
        for line in long_lines(&text) {
            long.push(format!("{}:{line}", path.strip_prefix(root).unwrap().display()));
        }
    }
    assert!(long.is_empty(), "{} lines have more than {MAX_COLUMNS} columns: {long:#?}", long.len());
}

#[test]
fn conditions_are_asked_by_if() {
    let found = offences(matched_conditions);
    assert!(found.is_empty(), "{}: {found:#?}", found.len());
}

#[test]
fn names_are_nouns_and_verbs() {
    let found = offences(bare_names);
    assert!(found.is_empty(), "{}: {found:#?}", found.len());
}

#[test]
fn documentation_opens_with_a_noun_or_a_verb() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for folder in COMMENTED {
        let mut headless = Vec::new();
        let mut n = 0;
        for path in all_files(&root.join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            for (line, opening) in openings(&path, &text) {
                n += 1;
                if is_headless(opening) {
                    headless
                        .push(format!("{}:{line}: {opening}", path.strip_prefix(root).unwrap().display()));
                }
            }
        }
        let percent = 100.0 * headless.len() as f64 / f64::from(n.max(1));
        assert!(percent <= MAX_HEADLESS_PERCENT, "{folder}: {percent:.1} % of {n} openings: {headless:#?}");
    }
}

#[test]
fn offences_are_found() {
    let tuples = |code: &str| tuple_parameters(code).len();
    assert_eq!(tuples("pub fn f<F: Fn(&u8) -> u8>(a: u8, (b, c): (u8, u8)) {}"), 1);
    assert_eq!(tuples("impl A {\n    fn f(\n        &self,\n        &(b, c): &(u8, u8),\n    ) {}\n}"), 1);
    assert_eq!(
        tuples("fn f(pair: (u8, u8), rest: &[(u8, u8)]) -> fn(u8) {}\n// fn g((a, b): (u8, u8)) {}"),
        0
    );
    assert_eq!(
        matched_conditions("match a {\n    true => 1,\n    false if b => 2,\n    _ => 3,\n}").len(),
        2
    );
    assert_eq!(matched_conditions("let a = true;\nmatch (a, b) {\n    (true, false) => 1,\n}").len(), 0);
    assert_eq!(
        tuple_lets("let (a, mut b) =\n    (f(1), 2);\nlet (c, d) = (self.f)(a);\nlet (e, f) = g();").len(),
        1
    );
    let wide = "x".repeat(MAX_COLUMNS - 3);
    assert!(long_lines(&format!("// {wide}\n//! | {wide} | {wide} |")).is_empty());
    assert_eq!(long_lines(&format!("let a = 1;\n// |{wide}|\n/// | of {wide}: {wide}\n//  {wide}")), [4]);
    let rust = "/// What it is.\n/// The rest.\npub struct A {\n    /// The place.\n    a: bool,\n}";
    let rust = openings(Path::new("a.rs"), rust);
    assert_eq!(rust, [(1, "What it is."), (4, "The place.")]);
    assert!(is_headless(rust[0].1) && !is_headless(rust[1].1) && !is_headless("`of` is a word"));
    let python = "\"\"\"Of one.\"\"\"\ndef f():\n    \"\"\"Returns f.\n\n    \"\"\"\n    x = 1";
    assert_eq!(openings(Path::new("a.py"), python), [(1, "Of one.\"\"\""), (3, "Returns f.")]);
    let names =
        "pub struct Seen {\n    pub asked: u8,\n    n_seen: u8,\n}\nfn told(given: u8) {}\nmod state;";
    assert_eq!(bare_names(names).len(), 3);
}
