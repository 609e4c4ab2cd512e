//! What an external scorer costs beyond the program itself: the same molecules through `ExternalScorer`, and through as many processes
//! of the program that read their share from a file and write to nowhere.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Parser;
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn::{Error, Result, Rng};
use gfn_molecules::{ExternalScorer, ExternalScorerConfig, MoleculeConfig, MoleculeEnv};
use gfn_plot::Table;
use serde_json::json;

/// Time an external scorer beside its program
#[derive(Parser, Debug)]
pub(crate) struct Args {
    /// Program; the default waits for a millisecond at each molecule
    #[arg(long, default_value = "python3 examples/heteroatom_scorer.py 1")]
    command: String,
    /// Processes of it
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Distinct molecules
    #[arg(long, default_value_t = 10_000)]
    molecules: usize,
    /// Most heavy atoms of one
    #[arg(long, default_value_t = 20)]
    max_atoms: usize,
    /// Times that both are measured, in turn
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("gfn-scorer-overhead-{}", std::process::id()));
    let done = std::fs::create_dir_all(&folder).map_err(io(&folder)).and_then(|()| measure(args, &folder));
    let _ = std::fs::remove_dir_all(&folder);
    done
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::io(path, source)
}

fn wrong(setting: &'static str, got: impl ToString, expected: &'static str) -> Error {
    Error::config(setting, got, expected)
}

/// Distinct molecules by random walks.
fn molecules(args: &Args) -> Result<Vec<String>> {
    let env = MoleculeEnv::new(MoleculeConfig::new(args.max_atoms))?;
    let (sampler, mut rng) = (Sampler::new(&env, &UniformPolicy), Rng::seeded(0));
    let mut found = BTreeSet::new();
    while found.len() < args.molecules {
        let before = found.len();
        for graph in sampler.forward(1_000, &mut rng)?.terminal_states().graphs() {
            found.insert(env.codec().molecule(graph)?.smiles());
        }
        if found.len() == before {
            return Err(wrong("--molecules", args.molecules, "fewer, or a larger --max-atoms"));
        }
    }
    Ok(found.into_iter().take(args.molecules).collect())
}

/// The program on its shares, one process each, its answers to nowhere: the seconds that it takes.
fn alone(args: &Args, shares: &[PathBuf]) -> Result<f64> {
    let began = Instant::now();
    let mut running = Vec::new();
    for share in shares {
        let child = command(args, share)?.stdout(Stdio::null()).spawn();
        running.push(child.map_err(io(Path::new(&args.command)))?);
    }
    for child in &mut running {
        child.wait().map_err(io(Path::new(&args.command)))?;
    }
    Ok(began.elapsed().as_secs_f64())
}

/// Its answers, in order.
fn answers(args: &Args, shares: &[PathBuf], n: usize) -> Result<Vec<f64>> {
    let mut scores = vec![f64::NAN; n];
    for (first, share) in shares.iter().enumerate() {
        let output = command(args, share)?.output().map_err(io(Path::new(&args.command)))?;
        let places = scores.iter_mut().skip(first).step_by(shares.len());
        for (place, line) in places.zip(String::from_utf8_lossy(&output.stdout).lines()) {
            *place = line.trim().parse().map_err(|_| wrong("an answer of the program", line, "a number"))?;
        }
    }
    Ok(scores)
}

fn command(args: &Args, share: &Path) -> Result<Command> {
    let mut words = args.command.split_whitespace();
    let program = words.next().ok_or_else(|| wrong("--command", "empty", "a program and its arguments"))?;
    let mut command = Command::new(program);
    command.args(words).stdin(File::open(share).map_err(io(share))?);
    Ok(command)
}

/// The run that other programs on the machine disturbed least.
fn least(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::INFINITY, f64::min)
}

fn measure(args: &Args, folder: &Path) -> Result<()> {
    if args.workers == 0 || args.molecules == 0 || args.repeats == 0 {
        return Err(wrong("--workers, --molecules and --repeats", 0, "at least 1 of each"));
    }
    let molecules = molecules(args)?;
    let mut shares = Vec::new();
    for first in 0..args.workers {
        let path = folder.join(format!("{first}.smi"));
        let lines: String = molecules.iter().skip(first).step_by(args.workers).map(|s| format!("{s}\n")).collect();
        std::fs::write(&path, lines).map_err(io(&path))?;
        shares.push(path);
    }
    // Not timed: a slow disk is none of the program's business.
    let expected = answers(args, &shares, molecules.len())?;
    let (mut by_itself, mut through) = (Vec::new(), Vec::new());
    let mut table = Table::new(["repeat", "program alone, s", "ExternalScorer, s", "more, %"]);
    for repeat in 1..=args.repeats {
        let seconds = alone(args, &shares)?;
        by_itself.push(seconds);
        // A new one each time: processes start within what is measured, and nothing is known.
        let config = ExternalScorerConfig::new(args.command.split_whitespace());
        let scorer = ExternalScorer::new(ExternalScorerConfig { workers: args.workers, ..config })?;
        let began = Instant::now();
        let found = scorer.scores(&molecules)?;
        through.push(began.elapsed().as_secs_f64());
        if found != expected {
            return Err(wrong("a score", "another than by the program alone", "the same scores both ways"));
        }
        let more = 100.0 * (through[repeat - 1] / seconds - 1.0);
        table.push([(repeat as u64).to_string().into(), seconds.into(), through[repeat - 1].into(), more.into()]);
    }
    let (by_itself, through) = (least(&by_itself), least(&through));
    let overhead = through / by_itself - 1.0;
    table.push(["least".into(), by_itself.into(), through.into(), (100.0 * overhead).into()]);
    eprintln!("{table}");
    if args.json {
        println!(
            "{}",
            json!({
                "example": "scorer_overhead", "command": args.command, "workers": args.workers,
                "molecules": molecules.len(), "alone_s": by_itself, "scorer_s": through, "overhead": overhead,
            })
        );
    }
    Ok(())
}
