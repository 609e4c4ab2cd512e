//! Tasks whose distribution is known exactly: environment, reward, and objects as text.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, ValueEnum};
use gfn::env::{EnumerableEnv, Reward, Rows, StateGraph, VectorEnv, VectorStates};
use gfn::graph::{GraphEnv, GraphFormat, GraphKind, GraphStates, read_graphs};
use gfn::metrics::Target;
use gfn::{Error, Result, Rng};
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};
use gfn_gym::hypergrid::{HyperGrid, RewardKind};
use gfn_gym::phylo_tree::{ParsimonyReward, PhyloTree};
use gfn_gym::ring::{Ring, RingReward};
use gfn_gym::sequence::{Alphabet, TableReward, TokenSequence};
use gfn_molecules::qm9str::{Qm9Str, Qm9StrReward};
use gfn_molecules::{Element, Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward, ScoreConfig};

use super::samples::{RowReader, fasta, has_graph6, read_text, samples, with_numbers};
use crate::flags::words;
use crate::run::lines::tell;
use crate::structures::bayesian_structure;

/// The task that is judged.
#[derive(Args, Clone, Debug)]
pub(crate) struct TaskArgs {
    /// The task
    #[arg(value_enum)]
    pub(crate) task: TaskName,
    /// Points along each dimension of a grid (by default 8), nodes of a ring (4), most nodes of a coloured graph (5), most atoms of a
    /// molecule (4), variables of a structure (5), species of a tree (7)
    #[arg(long)]
    size: Option<usize>,
    /// Dimensions of a grid
    #[arg(long, default_value_t = 2)]
    ndim: usize,
    /// Rewards of all sequences: a CSV file with the header `sequence,reward`
    #[arg(long, required_if_eq("task", "tfbind8"))]
    table: Option<PathBuf>,
    /// DNA of the species of a tree, the first ones of a file in FASTA; by default seven made-up sequences
    #[arg(long)]
    alignment: Option<PathBuf>,
}

/// Seven species, whose letters follow no tree exactly.
const SPECIES: &str = "\
>0\nACGTACGTTGCA\n>1\nACGTACGATGCA\n>2\nACGAACGATGTA\n>3\nTCGAACCATGTA\n>4\nTCGAGCCATCTA\n>5\nTCCAGCGTTCTG\n>6\nACCAGTGTTCTG\n";

/// Tasks by name. Each is what `reproduce` trains under that name, with its defaults.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TaskName {
    /// Points of a grid: numbers, a point on a line
    Grid,
    /// Directed graphs on labelled nodes, rings above all: digraph6, or edge lists
    Ring,
    /// Connected graphs of two-coloured nodes, up to isomorphism: edge lists
    ColoredGraphs,
    /// Molecules of C, N, O: SMILES
    Molecule,
    /// Structures of a Bayesian network: digraph6, or edge lists
    Structure,
    /// Strings of five of eleven blocks: their numbers
    Qm9str,
    /// DNA of eight letters
    Tfbind8,
    /// Rooted trees of species by parsimony: Newick, species as numbers from 0 or by their names in the
    /// alignment
    Trees,
}

/// Reads the states of a file, and the number of its samples that are no states of the task.
type Reader<S> = Box<dyn Fn(&Path) -> Result<(S, usize)>>;
/// The text of a row.
type Writer<S> = Box<dyn Fn(&S, usize) -> Result<String>>;

/// A task whose states can be listed.
pub(crate) struct Known<E: EnumerableEnv, R> {
    pub(crate) env: E,
    pub(crate) reward: R,
    read: Reader<E::States>,
    write: Writer<E::States>,
}

/// What is done with a task, whatever its states are.
pub(crate) trait Look {
    fn look<E: EnumerableEnv, R: Reward<E::States>>(self, known: Known<E, R>) -> Result<()>;
}

/// States that are listed at most.
const LISTED: usize = 2_000_000;

impl<E: EnumerableEnv, R: Reward<E::States>> Known<E, R> {
    pub(crate) fn listed(&self) -> Result<Listed<E>> {
        let graph = StateGraph::build(&self.env, LISTED)?;
        let target = graph.target_distribution(&self.reward, None)?;
        let grouping = graph.objects(&self.env)?;
        Ok(Listed { graph, target, of: grouping.of, first: grouping.first })
    }

    /// Reads the states of a file, and the number of its samples that are no states of the task.
    pub(crate) fn read(&self, path: &Path) -> Result<(E::States, usize)> {
        let (states, n_invalid) = (self.read)(path)?;
        if states.is_empty() && n_invalid == 0 {
            return Err(Error::file(path, "it has no samples", "give a file of samples"));
        }
        Ok((states, n_invalid))
    }

    /// The text of a state.
    pub(crate) fn text(&self, states: &E::States, row: usize) -> Result<String> {
        (self.write)(states, row)
    }
}

/// All states of a task, and the objects that they are.
pub(crate) struct Listed<E: EnumerableEnv> {
    pub(crate) graph: StateGraph<E>,
    pub(crate) target: Target,
    /// The object of each state.
    pub(crate) of: Vec<usize>,
    /// A state of each object.
    pub(crate) first: Vec<usize>,
}

impl<E: EnumerableEnv> Listed<E> {
    /// Probabilities of objects, from those of states.
    pub(crate) fn of_objects(&self, of_states: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.first.len()];
        self.of.iter().zip(of_states).for_each(|(&object, p)| out[object] += p);
        out
    }
}

impl TaskArgs {
    pub(crate) fn name(&self) -> String {
        words(&self.task)
    }

    pub(crate) fn look(&self, look: impl Look) -> Result<()> {
        if self.size.is_some() && matches!(self.task, TaskName::Qm9str | TaskName::Tfbind8) {
            return Err(Error::config("--size", self.name(), "no such flag: this task has one size"));
        }
        if self.alignment.is_some() && self.task != TaskName::Trees {
            return Err(Error::config("--alignment", self.name(), "trees, the task that it belongs to"));
        }
        let size = |default: usize| self.size.unwrap_or(default);
        match self.task {
            TaskName::Grid => {
                let grid = HyperGrid::new(self.ndim, size(8))?;
                let reward = RewardKind::Original.standard(&grid)?;
                look.look(numbers(grid.env(), reward, self.ndim, 0))
            }
            TaskName::Ring => {
                let env = Ring::new(size(4), GraphKind::Directed)?.into_env();
                let reward = RingReward::new(100.0, 1e-6)?;
                look.look(graphs(env, reward, GraphFormat::Graph6))
            }
            TaskName::ColoredGraphs => look.look(graphs(
                ColoredGraphs::new(size(5))?.into_env(),
                ColoredGraphReward::Count,
                GraphFormat::EdgeList,
            )),
            TaskName::Structure => {
                let args = bayesian_structure::Args::try_parse_from(["", "--nodes", &size(5).to_string()])
                    .map_err(|error| Error::config("--size", error, "a number of variables"))?;
                let (env, reward) = bayesian_structure::simulated(&args, &mut Rng::seeded(0))?;
                look.look(graphs(env, reward, GraphFormat::Graph6))
            }
            TaskName::Molecule => {
                let (elements, charges) = (vec![Element::C, Element::N, Element::O], Vec::new());
                let molecules = MoleculeEnv::new(MoleculeConfig { elements, charges, ..MoleculeConfig::new(size(4)) })?;
                let env = molecules.env().clone();
                let score = ScoreConfig::named("heteroatoms")
                    .ok_or(Error::missing("the task", "its score", "name another"))?
                    .build()?;
                let (codec, writer) = (molecules.codec().clone(), molecules.codec().clone());
                let reward = MoleculeReward::new(&codec, score);
                let read = move |line: &str| {
                    codec.graph(&Molecule::from_smiles(line.split_whitespace().next().unwrap_or_default())?)
                };
                look.look(Known {
                    env,
                    reward,
                    read: Box::new(move |path| {
                        let (rows, n_invalid) = lines(path, false, &read)?;
                        Ok((GraphStates::from(rows), n_invalid))
                    }),
                    write: Box::new(move |states: &GraphStates, row| {
                        let graph = &states.graphs()[row];
                        // The start has no atoms.
                        if graph.n_nodes() == 0 { Ok(String::new()) } else { Ok(writer.molecule(graph)?.smiles()) }
                    }),
                })
            }
            TaskName::Qm9str => {
                look.look(numbers(VectorEnv::new(Qm9Str), Qm9StrReward::standard(), Qm9Str::ENTRIES, 1))
            }
            TaskName::Tfbind8 => {
                let (sequence, dna) = (TokenSequence::tf_bind_8(), Alphabet::dna());
                let path = self.table.as_ref().ok_or(Error::missing("tfbind8", "a table", "give --table"))?;
                let (reward, reader) = (TableReward::read(&sequence, &dna, path, None)?, dna.clone());
                let read = move |path: &Path| {
                    let row = |line: &str| -> Result<Vec<u16>> {
                        Ok(sequence.states_of(&[reader.encode(line)?])?.row(0).to_vec())
                    };
                    vectors(path, sequence.entries(), false, &row)
                };
                let write =
                    move |states: &VectorStates, row: usize| dna.decode(&TokenSequence::tokens(states.row(row)));
                look.look(Known { env: sequence.env(), reward, read: Box::new(read), write: Box::new(write) })
            }
            TaskName::Trees => {
                let rules = PhyloTree::new(size(7))?;
                let env = rules.env();
                let (path, text) = match &self.alignment {
                    Some(path) => (path.as_path(), read_text(path)?),
                    None => (Path::new("the species of this task"), SPECIES.to_owned()),
                };
                let (names, species): (Vec<_>, Vec<_>) = fasta(path, &text)?.into_iter().take(rules.n()).unzip();
                // Relative to the best tree's, as rewards of long sequences are tiny.
                let of = |offset: f64| ParsimonyReward::dna(&rules, &species, offset, 1.0);
                let too_many = || Error::config("--size", rules.n(), "at most 8 species, whose trees can be listed");
                let trees = rules.all_trees().ok_or_else(too_many)?;
                let fewest = of(0.0)?.parsimony(&trees)?.into_iter().min().unwrap_or_default();
                let read = move |path: &Path| {
                    let tree = |line: &str| rules.read_newick(&with_numbers(line, &names));
                    vectors(path, rules.entries(), false, &tree)
                };
                let write = move |states: &VectorStates, row: usize| Ok(rules.newick(states.row(row)));
                look.look(Known { env, reward: of(fewest as f64)?, read: Box::new(read), write: Box::new(write) })
            }
        }
    }
}

/// A task whose objects are rows of numbers, which entries are with `offset` added.
fn numbers<E: EnumerableEnv<States = VectorStates>, R>(env: E, reward: R, width: usize, offset: u16) -> Known<E, R> {
    let row = move |line: &str| -> Result<Vec<u16>> {
        let words = line.split([',', ' ', '\t', ';']).filter(|word| !word.is_empty());
        let row: Option<Vec<u16>> = words.map(|word| word.parse::<u16>().ok()?.checked_add(offset)).collect();
        let row = row.filter(|row| row.len() == width);
        row.ok_or_else(|| Error::config("a row of numbers", line, "as many whole numbers of 0 or more as the task has"))
    };
    let read = move |path: &Path| vectors(path, width, true, &row);
    let write = move |states: &VectorStates, row: usize| {
        Ok(states.row(row).iter().map(|x| (x - offset.min(*x)).to_string()).collect::<Vec<_>>().join(" "))
    };
    Known { env, reward, read: Box::new(read), write: Box::new(write) }
}

fn graphs<R: Reward<GraphStates>>(env: GraphEnv, reward: R, format: GraphFormat) -> Known<GraphEnv, R> {
    Known {
        env,
        reward,
        read: Box::new(|path| {
            // Edge lists have several words on each line, and several lines for each graph.
            let text = read_text(path)?;
            if !has_graph6(&text) && text.lines().any(|line| line.trim().contains([' ', '\t'])) {
                return Ok((GraphStates::from(read_graphs(path)?), 0));
            }
            let (rows, n_invalid) = lines(path, false, &|line: &str| GraphFormat::Graph6.read(line.as_bytes()))?;
            Ok((GraphStates::from(rows.concat()), n_invalid))
        }),
        write: Box::new(move |states, row| {
            let text = format.write(&states.graphs()[row..=row])?;
            Ok(text.trim_end().replace('\n', "; "))
        }),
    }
}

/// The rows that the lines of a file are, and the number of lines that are no object of the task.
fn lines<T>(path: &Path, numbers: bool, row: RowReader<'_, T>) -> Result<(Vec<T>, usize)> {
    let (rows, n_invalid, notes) = samples(&read_text(path)?, numbers, row);
    notes.iter().for_each(|note| tell(format_args!("{}: {note}", path.display())));
    Ok((rows, n_invalid))
}

/// The same of a task whose objects are rows of this width.
fn vectors(path: &Path, width: usize, numbers: bool, row: RowReader<'_, Vec<u16>>) -> Result<(VectorStates, usize)> {
    let (rows, n_invalid) = lines(path, numbers, row)?;
    Ok((VectorStates::from_flat(width, rows.concat())?, n_invalid))
}
