//! A program that reproduces all published results. Each result is a task, which is a subcommand: `cargo run
//! --release --example reproduce -- ring --nodes 4 --directed`.
//!
//! `reproduce --help` lists the tasks, and `reproduce TASK --help` lists the flags of a task. With `--json`
//! the last line of the output is JSON for programs. A task is a struct of flags that implements [`Task`],
//! and a row of [`TASKS`]. To learn the library, read the smaller examples in the parent folder instead.

mod continuous;
mod flags;
mod graphs;
mod judging;
mod molecules;
mod prelude;
mod run;
mod sample;
mod structures;
mod vectors;

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use gfn_plot as plot;

use prelude::*;

/// A task of the program. The fields of its struct are its flags, and the struct's documentation is the
/// task's help.
pub(crate) trait Task: Args {
    /// Runs the task, and prints its result.
    fn run(&self) -> Result<()>;
}

/// A row of the table of tasks: the name of a subcommand, and functions that add its flags and run it.
struct Row {
    name: &'static str,
    /// Adds the flags of the task to its subcommand.
    flags: fn(Command) -> Command,
    run: fn(&ArgMatches) -> Result<()>,
}

const fn row<T: Task>(name: &'static str) -> Row {
    Row { name, flags: T::augment_args, run: run_by_flags::<T> }
}

fn run_by_flags<T: Task>(flags: &ArgMatches) -> Result<()> {
    let task = T::from_arg_matches(flags);
    task.map_err(|error| Error::config("the flags", error, "flags that `--help` lists"))?.run()
}

/// All tasks of the program, in the order of `--help`.
const TASKS: &[Row] = &[
    row::<graphs::ring::Rings>("ring"),
    row::<graphs::growth::AllGraphs>("all-graphs"),
    row::<graphs::growth::ColoredGraphs>("colored-graphs"),
    row::<graphs::graph_problem::GraphProblems>("graph-problem"),
    row::<sample::Sample>("sample"),
    row::<graphs::solve::Solve>("solve"),
    row::<judging::judge::Truth>("truth"),
    row::<judging::judge::Judge>("judge"),
    row::<judging::certificates::Certificates>("certificates"),
    row::<graphs::speed::Speed>("speed"),
    row::<graphs::devices::Devices>("devices"),
    row::<structures::bayesian_structure::Structures>("bayesian-structure"),
    row::<structures::bayesian_structure::StructuresOfFile>("dag-from-csv"),
    row::<molecules::atoms::Molecules>("molecule"),
    row::<molecules::atoms::ExternalMolecules>("molecule-external"),
    row::<molecules::molecule_multi_objective::MultiObjective>("molecule-multi-objective"),
    row::<molecules::atoms::FragmentTrees>("fragments"),
    row::<molecules::seh_frag::Seh>("seh-frag"),
    row::<molecules::seh_frag::moo::SehObjectives>("seh-frag-moo"),
    row::<vectors::strings::Qm9Strings>("qm9str"),
    row::<vectors::strings::TfBind8>("tfbind8"),
    row::<vectors::hypergrid::Grid>("hypergrid"),
    row::<vectors::hypergrid::ConditionalGrid>("conditional-hypergrid"),
    row::<vectors::strings::BitSequences>("bit-sequence"),
    row::<vectors::spins::Ebm>("discrete-ebm"),
    row::<vectors::spins::Ising>("ising"),
    row::<vectors::hypergrid::Exploration>("exploration"),
    row::<vectors::hypergrid::LocallySearched>("local-search"),
    row::<vectors::offline::Offline>("offline"),
    row::<vectors::peaks::PeakSearch>("peaks"),
    row::<vectors::compare_objectives::Comparison>("compare-objectives"),
    row::<continuous::boxes::Boxes>("box"),
    row::<continuous::boxes::Lines>("line"),
    row::<continuous::diffusion::Diffusion>("diffusion"),
    row::<continuous::diffusion::PosteriorDiffusion>("diffusion-posterior"),
];

fn main() -> ExitCode {
    let program = Command::new("reproduce").about("Train and measure what the published figures are of");
    let tasks = TASKS.iter().map(|task| (task.flags)(Command::new(task.name)));
    let program = program.subcommand_required(true).arg_required_else_help(true).subcommands(tasks);
    let matches =
        flags::config_file::matches(&program, std::env::args_os()).unwrap_or_else(|error| error.exit());
    run::task_flags::remember(&program, &matches);
    let Some((name, flags)) = matches.subcommand() else { return ExitCode::FAILURE };
    let Some(task) = TASKS.iter().find(|task| task.name == name) else { return ExitCode::FAILURE };
    let done = if run::seeds::count(flags) > 1 {
        run::seeds::run(&program, flags, task.run)
    } else {
        run::members::run(flags, || (task.run)(flags))
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            run::files::tell(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}
