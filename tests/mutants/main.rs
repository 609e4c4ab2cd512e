//! Mutants that one build holds: `gfn-mutants CORE SKIPPED FILE...` rewrites files of a copy of the core (`src`) in place and prints a JSON
//! line for each mutant. `scripts/mutants.py` builds the copy once and chooses mutants at run time: a build for each, as cargo-mutants
//! makes it, takes minutes.
//!
//! Mutants are those of cargo-mutants: another operator, none in place of `!` and `-`, a function that gives a plain value at once. SKIPPED
//! is a file of numbers that don't compile; they keep their numbers.

mod sites;
mod values;

use std::collections::HashSet;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use serde_json::json;
use sites::Site;

/// What each mutated crate has beside its own code.
const SWITCH: &str = r#"//! Mutants, chosen by `GFN_MUTANT`; `GFN_MUTANTS_SEEN` names a file for the first numbers of what runs.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static CHOSEN: OnceLock<(u32, Option<String>)> = OnceLock::new();
static SEEN: [AtomicBool; 65_536] = [const { AtomicBool::new(false) }; 65_536];

/// The chosen mutant, at a place whose first mutant is this.
pub(crate) fn at(first: u32) -> u32 {
    let chosen = CHOSEN.get_or_init(|| {
        let number = std::env::var("GFN_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        (number, std::env::var("GFN_MUTANTS_SEEN").ok())
    });
    if let Some(path) = &chosen.1 {
        if !SEEN[first as usize].swap(true, Ordering::Relaxed) {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let _ = file.and_then(|mut file| writeln!(file, "{first}"));
        }
    }
    chosen.0
}
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [core, skipped, files @ ..] = arguments.as_slice() else {
        return Err("give the folder of the core, a file of skipped numbers, and files".into());
    };
    let skipped: HashSet<u32> =
        std::fs::read_to_string(skipped)?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let mut next = 1;
    for file in files {
        let path = Path::new(core).join(file);
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(&path, mutated(&text, file, &skipped, &mut next)?)?;
    }
    let lib = Path::new(core).join("lib.rs");
    let text = std::fs::read_to_string(&lib)?;
    // Behind the crate's own documentation and attributes.
    let at = text.find("\nmod ").or_else(|| text.find("\npub mod ")).ok_or("no module in lib.rs")?;
    let allowed = "#[allow(warnings, clippy::all)]\nmod mutants;\n";
    std::fs::write(
        &lib,
        format!(
            "#![allow(warnings, arithmetic_overflow, unconditional_panic)]\n{}\n{allowed}{}",
            &text[..at],
            &text[at..]
        ),
    )?;
    Ok(std::fs::write(Path::new(core).join("mutants.rs"), SWITCH)?)
}

/// The text with a choice at each site; mutants are numbered on from `next` and printed.
fn mutated(text: &str, file: &str, skipped: &HashSet<u32>, next: &mut u32) -> Result<String, Box<dyn Error>> {
    let mut sites: Vec<Site> = sites::of(text)?;
    sites.sort_by_key(|site| site.range.start);
    let (mut out, mut done) = (String::new(), 0);
    for site in sites {
        let (first, own) = (*next, &text[site.range.clone()]);
        let mut arms = String::new();
        for mutant in &site.mutants {
            let line = text[..mutant.at].matches('\n').count() + 1;
            if !skipped.contains(next) {
                println!(
                    "{}",
                    json!({ "id": next, "first": first, "file": file, "line": line, "function": site.function, "what": mutant.what })
                );
                write!(arms, "\n/*mutant {next}*/ {next} => {},", mutant.text)?;
            }
            *next += 1;
        }
        out += &text[done..site.range.start];
        if site.is_body {
            write!(out, "\nmatch crate::mutants::at({first}) {{ {arms}\n_ => {{}} }}\n")?;
        } else {
            write!(out, "(match crate::mutants::at({first}) {{ {arms}\n_ => {own} }})")?;
        }
        done = site.range.end;
    }
    Ok(out + &text[done..])
}
