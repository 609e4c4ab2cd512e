//! Style rules: parameters have names, `if` instead of `match` on conditions, documentation begins with a
//! noun.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders to check, without folders named `tests`.
const FOLDERS: [&str; 8] = ["src", "gym", "plot", "judge", "extras", "dist", "python", "examples"];
/// Words with which documentation of a public item may not begin.
const QUESTION_WORDS: [&str; 9] = ["What", "Whatever", "Whether", "How", "Who", "Whoever", "Whom", "Whose", "Which"];

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") && !path.ends_with("target") {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Lists all violations of a rule with file and line.
fn violations(find_violations: fn(&str) -> Vec<(usize, String)>) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for path in FOLDERS.iter().flat_map(|folder| files(&root.join(folder))) {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let path = path.strip_prefix(root).unwrap().display().to_string();
        found.extend(find_violations(code).into_iter().map(|(line, what)| format!("{path}:{line}: {what}")));
    }
    found
}

/// Returns the line number of a byte, from 1.
fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// Returns the text between the bracket at the beginning of `code` and its closing bracket.
fn text_in_brackets(code: &str) -> &str {
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

/// Splits a list of parameters at commas outside of brackets.
fn parameters(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts, mut before) = (0, 0, Vec::new(), ' ');
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

/// Finds functions with a destructured tuple parameter: `(a, b): (A, B)`.
fn tuple_parameters(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let own_word = code[..at].chars().next_back().is_none_or(|c| c == ' ' || c == '\n');
        let line = code[..at].rsplit('\n').next().unwrap();
        if !own_word || line.contains("//") {
            continue;
        }
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        // Generic parameters may contain brackets: `F: Fn(&T)`.
        let (mut depth, mut before) = (0, ' ');
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
        if !name.is_empty() && parameters(text_in_brackets(&code[at + open..])).iter().any(taken_apart) {
            found.push((line_of(code, at), format!("`{name}` takes a tuple apart: give its parts names of their own")));
        }
    }
    found
}

/// Finds arms `true` and `false` of a `match`.
fn matched_conditions(code: &str) -> Vec<(usize, String)> {
    let arm = |line: &str| {
        let line = line.trim_start();
        ["true", "false"]
            .iter()
            .any(|word| line.strip_prefix(word).is_some_and(|rest| rest.starts_with(" =>") || rest.starts_with(" if ")))
    };
    let lines = code.lines().enumerate().filter(|(_, line)| arm(line));
    lines.map(|(at, _)| (at + 1, "`match` over a condition: write `if`".to_owned())).collect()
}

/// Finds documentation of public items, their fields and variants and of trait methods that begins with a
/// question word.
fn question_openings(code: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(text) = line.trim_start().strip_prefix("/// ") else { continue };
        let word = text.split(|c: char| !c.is_alphabetic()).next().unwrap();
        let opens = at == 0 || !lines[at - 1].trim_start().starts_with("///");
        if !opens || !QUESTION_WORDS.contains(&word) {
            continue;
        }
        let mut item = lines[at..].iter().map(|line| line.trim_start());
        let item = item.find(|line| !line.starts_with("///") && !line.starts_with("#[")).unwrap_or("");
        let private = ["pub(", "struct ", "enum ", "const ", "static ", "mod ", "impl", "let ", "macro_rules"];
        if !private.iter().any(|start| item.starts_with(start)) {
            found.push((at + 1, format!("documentation opens with `{word}`: begin with the noun")));
        }
    }
    found
}

#[test]
fn parameters_have_names() {
    let found = violations(tuple_parameters);
    assert!(found.is_empty(), "{}: {found:#?}", found.len());
}

#[test]
fn conditions_use_if() {
    let found = violations(matched_conditions);
    assert!(found.is_empty(), "{}: {found:#?}", found.len());
}

#[test]
fn documentation_begins_with_the_noun() {
    let found = violations(question_openings);
    assert!(found.is_empty(), "{}: {found:#?}", found.len());
}

#[test]
fn violations_are_found() {
    let tuples = |code: &str| tuple_parameters(code).len();
    assert_eq!(tuples("pub fn f<F: Fn(&u8) -> u8>(a: u8, (b, c): (u8, u8)) {}"), 1);
    assert_eq!(tuples("impl A {\n    fn f(\n        &self,\n        &(b, c): &(u8, u8),\n    ) {}\n}"), 1);
    assert_eq!(tuples("fn f(pair: (u8, u8), rest: &[(u8, u8)]) -> fn(u8) {}\n// fn g((a, b): (u8, u8)) {}"), 0);
    assert_eq!(matched_conditions("match a {\n    true => 1,\n    false if b => 2,\n    _ => 3,\n}").len(), 2);
    assert_eq!(matched_conditions("let a = true;\nmatch (a, b) {\n    (true, false) => 1,\n}").len(), 0);
    assert_eq!(question_openings("/// What it is.\npub struct A {\n    /// Whether so.\n    b: bool,\n}").len(), 2);
    assert_eq!(
        question_openings("/// Whatever.\nstruct A;\n/// The way.\n/// How long it is.\npub struct B;").len(),
        0
    );
}
