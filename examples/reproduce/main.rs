//! Every published figure, one subcommand per task: `cargo run --release --example reproduce -- ring --nodes 4 --directed`.
//!
//! `reproduce --help` lists the tasks, `reproduce TASK --help` the flags of one; with `--json` the last line is for programs.
//! The examples beside this folder are the ones to learn from: each is whole, and short.

mod continuous;
mod flags;
mod graphs;
mod judging;
mod molecules;
mod run;
mod structures;
mod vectors;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use continuous::{boxes, diffusion, diffusion_posterior, line};
use gfn::Result;
use gfn_plot as plot;
use graphs::{all_graphs, colored_graphs, devices, graph_problem, ring, sample, solve, speed};
use judging::{certificates, judge, truth};
use molecules::{fragments, molecule, molecule_external, molecule_multi_objective, qm9str, seh_frag};
use run::lines::tell;
use structures::{bayesian_structure, dag_from_csv};
use vectors::{
    bit_sequence, compare_objectives, conditional_hypergrid, discrete_ebm, exploration, hypergrid, ising, local_search,
    offline, peaks, tfbind8,
};

/// Train and measure what the published figures are of
#[derive(Parser, Debug)]
struct Reproduce {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    Ring(ring::Args),
    AllGraphs(all_graphs::Args),
    ColoredGraphs(colored_graphs::Args),
    GraphProblem(graph_problem::Args),
    Sample(sample::Args),
    Solve(solve::Args),
    Truth(truth::Args),
    Judge(judge::Args),
    Certificates(certificates::Args),
    Speed(speed::Args),
    Devices(devices::Args),
    BayesianStructure(bayesian_structure::Args),
    DagFromCsv(dag_from_csv::Args),
    Molecule(molecule::Args),
    MoleculeExternal(molecule_external::Args),
    MoleculeMultiObjective(molecule_multi_objective::Args),
    Fragments(fragments::Args),
    SehFrag(seh_frag::Args),
    SehFragMoo(seh_frag::moo::Args),
    Qm9str(qm9str::Args),
    Tfbind8(tfbind8::Args),
    Hypergrid(hypergrid::Args),
    ConditionalHypergrid(conditional_hypergrid::Args),
    BitSequence(bit_sequence::Args),
    DiscreteEbm(discrete_ebm::Args),
    Ising(ising::Args),
    Exploration(exploration::Args),
    LocalSearch(local_search::Args),
    Offline(offline::Args),
    Peaks(peaks::Args),
    CompareObjectives(compare_objectives::Args),
    Box(boxes::Args),
    Line(line::Args),
    Diffusion(diffusion::Args),
    DiffusionPosterior(diffusion_posterior::Args),
}

fn main() -> ExitCode {
    let (program, given) = flags::config_file::parse::<Reproduce>();
    run::task_flags::remember(&Reproduce::command(), &given);
    match run::members::run(&given, || run(&program.task)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<()> {
    match task {
        Task::Ring(args) => ring::run(args),
        Task::AllGraphs(args) => all_graphs::run(args),
        Task::ColoredGraphs(args) => colored_graphs::run(args),
        Task::GraphProblem(args) => graph_problem::run(args),
        Task::Sample(args) => sample::run(args),
        Task::Solve(args) => solve::run(args),
        Task::Truth(args) => truth::run(args),
        Task::Judge(args) => judge::run(args),
        Task::Certificates(args) => certificates::run(args),
        Task::Devices(args) => devices::run(args),
        Task::Speed(args) => speed::run(args),
        Task::BayesianStructure(args) => bayesian_structure::run(args),
        Task::DagFromCsv(args) => dag_from_csv::run(args),
        Task::Molecule(args) => molecule::run(args),
        Task::MoleculeExternal(args) => molecule_external::run(args),
        Task::MoleculeMultiObjective(args) => molecule_multi_objective::run(args),
        Task::Fragments(args) => fragments::run(args),
        Task::SehFrag(args) => seh_frag::run(args),
        Task::SehFragMoo(args) => seh_frag::moo::run(args),
        Task::Qm9str(args) => qm9str::run(args),
        Task::Tfbind8(args) => tfbind8::run(args),
        Task::Hypergrid(args) => hypergrid::run(args),
        Task::ConditionalHypergrid(args) => conditional_hypergrid::run(args),
        Task::BitSequence(args) => bit_sequence::run(args),
        Task::DiscreteEbm(args) => discrete_ebm::run(args),
        Task::Ising(args) => ising::run(args),
        Task::Exploration(args) => exploration::run(args),
        Task::LocalSearch(args) => local_search::run(args),
        Task::Offline(args) => offline::run(args),
        Task::Peaks(args) => peaks::run(args),
        Task::CompareObjectives(args) => compare_objectives::run(args),
        Task::Box(args) => boxes::run(args),
        Task::Line(args) => line::run(args),
        Task::Diffusion(args) => diffusion::run(args),
        Task::DiffusionPosterior(args) => diffusion_posterior::run(args),
    }
}
