//! Tasks whose distribution is known exactly: their environments and rewards, and the text format of their
//! objects.

use gfn::graph::{GraphFormat, read_graphs};
use gfn::metrics::Target;
use gfn_gym::colored_graphs::{ColoredGraphReward, ColoredGraphs};
use gfn_gym::phylo_tree::{ParsimonyReward, PhyloTree};
use gfn_gym::sequence::{Alphabet, TableReward, TokenSequence};
use gfn_molecules::qm9str::{Qm9Str, Qm9StrReward};
use gfn_molecules::{MoleculeReward, ScoreConfig};

use super::samples::{RowReader, fasta, has_graph6, read_text, samples, with_numbers};
use crate::molecules::atoms::plain_molecules;
use crate::prelude::*;
use crate::structures::problem::ProblemArgs;

/// The task whose samples are judged.
#[derive(Args)]
pub(super) struct TaskArgs {
    /// The task
    #[arg(value_enum)]
    task: TaskName,
    /// Points along each dimension of a grid (by default 8), nodes of a ring (4), largest number of nodes of
    /// a coloured graph (5) or of atoms of a molecule (4), variables of a structure (5), species of a tree
    /// (7)
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

/// The default alignment of seven species. It fits no tree exactly.
const SPECIES: &str = "\
>0\nACGTACGTTGCA\n>1\nACGTACGATGCA\n>2\nACGAACGATGTA\n>3\nTCGAACCATGTA\n>4\nTCGAGCCATCTA\n>5\nTCCAGCGTTCTG\n>6\nACCAGTGTTCTG\n";

/// A task that can be judged: each is the task of `reproduce` with that name, with its defaults.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum TaskName {
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
    /// Rooted trees by parsimony: Newick, species as numbers from 0 or by their names in the alignment
    Trees,
}

/// A function that reads the states in a file, and counts the file's samples that are no states of the task.
type Reader<S> = Box<dyn Fn(&Path) -> Result<(S, usize)>>;
/// A function that writes the state in a row as text.
type Writer<S> = Box<dyn Fn(&S, usize) -> Result<String>>;

/// A task whose states can be listed.
pub(super) struct KnownTask<E: EnumerableEnv> {
    pub(super) env: E,
    pub(super) reward: Box<dyn Reward<E::States>>,
    pub(super) read: Reader<E::States>,
    pub(super) write: Writer<E::States>,
}

/// A function of a task that works for any type of states.
pub(super) trait Visit {
    fn visit<E: EnumerableEnv>(self, known: KnownTask<E>) -> Result<()>;
}

/// The largest number of states that a task may have to be listed.
const LISTED: usize = 2_000_000;

impl<E: EnumerableEnv> KnownTask<E> {
    pub(super) fn list(&self) -> Result<ListedTask<E>> {
        let graph = StateGraph::build(&self.env, LISTED)?;
        let target = graph.target_distribution(&self.reward, None)?;
        let grouping = graph.objects(&self.env)?;
        Ok(ListedTask { graph, target, of: grouping.of, first: grouping.first })
    }
}

/// All states of a task, and the object that each state stands for.
pub(super) struct ListedTask<E: EnumerableEnv> {
    pub(super) graph: StateGraph<E>,
    pub(super) target: Target,
    /// The index of each state's object.
    pub(super) of: Vec<usize>,
    /// The index of one state of each object.
    pub(super) first: Vec<usize>,
}

impl<E: EnumerableEnv> ListedTask<E> {
    /// Sums the probabilities of states to probabilities of objects.
    pub(super) fn of_objects(&self, of_states: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.first.len()];
        self.of.iter().zip(of_states).for_each(|(&object, p)| out[object] += p);
        out
    }
}

impl TaskArgs {
    pub(super) fn name(&self) -> String {
        name_of(self.task).replace('-', " ")
    }

    /// Builds the task that the flags choose, and calls `visit` with it.
    pub(super) fn visit(&self, visit: impl Visit) -> Result<()> {
        if self.size.is_some() && [TaskName::Qm9str, TaskName::Tfbind8].contains(&self.task) {
            return Err(Error::config(
                "--size",
                self.name(),
                "a command without this flag, because this task has only one size",
            ));
        }
        if self.alignment.is_some() && self.task != TaskName::Trees {
            return Err(Error::config(
                "--alignment",
                self.name(),
                "the task trees, because no other task has an alignment",
            ));
        }
        let size = |default: usize| self.size.unwrap_or(default);
        match self.task {
            TaskName::Grid => {
                let grid = HyperGrid::new(self.ndim, size(8))?;
                visit.visit(numbers(grid.env(), RewardKind::Original.standard(&grid)?, 0))
            }
            TaskName::Ring => {
                let env = Ring::new(size(4), GraphKind::Directed)?.into_env();
                visit.visit(graphs(env, RingReward::new(100.0, 1e-6)?, GraphFormat::Graph6))
            }
            TaskName::ColoredGraphs => {
                let env = ColoredGraphs::new(size(5))?.into_env();
                visit.visit(graphs(env, ColoredGraphReward::Count, GraphFormat::EdgeList))
            }
            TaskName::Structure => {
                let problem = ProblemArgs::simulated(size(5), &mut Rng::seeded(0))?;
                let env = problem.env()?;
                let reward = problem.reward(&env)?;
                visit.visit(graphs(env, reward, GraphFormat::Graph6))
            }
            TaskName::Molecule => visit.visit(molecules(size(4))?),
            TaskName::Qm9str => visit.visit(numbers(VectorEnv::new(Qm9Str), Qm9StrReward::standard(), 1)),
            TaskName::Tfbind8 => {
                let (sequence, dna) = (TokenSequence::tf_bind_8(), Alphabet::dna());
                let path = self.table.as_ref().ok_or(Error::missing(
                    "tfbind8",
                    "a table",
                    "give its path by --table",
                ))?;
                let (env, reward) = (sequence.env(), TableReward::read(&sequence, &dna, path, None)?);
                let reader = dna.clone();
                let row = move |line: &str| Ok(sequence.states_of(&[reader.encode(line)?])?.row(0).to_vec());
                let write = move |row: &[u16]| dna.decode(&TokenSequence::tokens(row));
                visit.visit(vectors(env, reward, false, row, write))
            }
            TaskName::Trees => self.visit_trees(size(7), visit),
        }
    }

    fn visit_trees(&self, size: usize, visit: impl Visit) -> Result<()> {
        let rules = PhyloTree::new(size)?;
        let env = rules.env();
        let (path, text) = match &self.alignment {
            Some(path) => (path.as_path(), read_text(path)?),
            None => (Path::new("the species of this task"), SPECIES.to_owned()),
        };
        let (names, species): (Vec<_>, Vec<_>) = fasta(path, &text)?.into_iter().take(rules.n()).unzip();
        // Rewards are divided by the best tree's reward, because rewards of long sequences are tiny.
        let reward = |offset: f64| ParsimonyReward::dna(&rules, &species, offset, 1.0);
        let too_many = || {
            Error::config(
                "--size",
                rules.n(),
                "at most 8 species, because the trees of more species can't be listed",
            )
        };
        let trees = rules.all_trees().ok_or_else(too_many)?;
        let fewest = reward(0.0)?.parsimony(&trees)?.into_iter().min().unwrap_or_default();
        let reward = reward(fewest as f64)?;
        let row = move |line: &str| rules.read_newick(&with_numbers(line, &names));
        visit.visit(vectors(env, reward, false, row, move |row: &[u16]| Ok(rules.newick(row))))
    }
}

/// Returns the task of molecules of C, N and O.
fn molecules(max_atoms: usize) -> Result<KnownTask<GraphEnv>> {
    let molecules = plain_molecules(max_atoms)?;
    let score = ScoreConfig::from_name("heteroatoms").ok_or(Error::missing(
        "the task",
        "its score",
        "choose another task",
    ))?;
    let (codec, writer) = (molecules.codec().clone(), molecules.codec().clone());
    let reward = Box::new(MoleculeReward::new(&codec, score.build()?));
    let row = move |line: &str| {
        codec.graph(&Molecule::from_smiles(line.split_whitespace().next().unwrap_or_default())?)
    };
    Ok(KnownTask {
        env: molecules.env().clone(),
        reward,
        read: Box::new(move |path| {
            let (rows, n_invalid) = lines(path, false, &row)?;
            Ok((GraphStates::from(rows), n_invalid))
        }),
        write: Box::new(move |states: &GraphStates, row| {
            let graph = &states.graphs()[row];
            // The initial state has no atoms, so it has no SMILES.
            if graph.n_nodes() == 0 { Ok(String::new()) } else { Ok(writer.molecule(graph)?.smiles()) }
        }),
    })
}

/// Returns a task whose objects are rows of numbers. The numbers are the entries minus `offset`.
fn numbers(env: VectorEnv, reward: impl Reward<VectorStates> + 'static, offset: u16) -> KnownTask<VectorEnv> {
    let width = env.width();
    let row = move |line: &str| -> Result<Vec<u16>> {
        let words = line.split([',', ' ', '\t', ';']).filter(|word| !word.is_empty());
        let row: Option<Vec<u16>> = words.map(|word| word.parse::<u16>().ok()?.checked_add(offset)).collect();
        let row = row.filter(|row| row.len() == width);
        row.ok_or_else(|| {
            Error::config(
                "a row of numbers",
                line,
                "one whole number of at least 0 for each entry of an object of the task",
            )
        })
    };
    let write = move |row: &[u16]| {
        Ok(row.iter().map(|x| (x - offset.min(*x)).to_string()).collect::<Vec<_>>().join(" "))
    };
    vectors(env, reward, true, row, write)
}

/// Returns a task whose objects are vectors, written one per line.
fn vectors(
    env: VectorEnv,
    reward: impl Reward<VectorStates> + 'static,
    are_numbers: bool,
    row: impl Fn(&str) -> Result<Vec<u16>> + 'static,
    write: impl Fn(&[u16]) -> Result<String> + 'static,
) -> KnownTask<VectorEnv> {
    let width = env.width();
    KnownTask {
        env,
        reward: Box::new(reward),
        read: Box::new(move |path| {
            let (rows, n_invalid) = lines(path, are_numbers, &row)?;
            Ok((VectorStates::from_flat(width, rows.concat())?, n_invalid))
        }),
        write: Box::new(move |states, k| write(states.row(k))),
    }
}

fn graphs(
    env: GraphEnv,
    reward: impl Reward<GraphStates> + 'static,
    format: GraphFormat,
) -> KnownTask<GraphEnv> {
    KnownTask {
        env,
        reward: Box::new(reward),
        read: Box::new(|path| {
            // A text that is an edge list has several words on a line, and several lines for each graph.
            let text = read_text(path)?;
            if !has_graph6(&text) && text.lines().any(|line| line.trim().contains([' ', '\t'])) {
                return Ok((GraphStates::from(read_graphs(path)?), 0));
            }
            let (rows, n_invalid) =
                lines(path, false, &|line: &str| GraphFormat::Graph6.read(line.as_bytes()))?;
            Ok((GraphStates::from(rows.concat()), n_invalid))
        }),
        write: Box::new(move |states, row| {
            let text = format.write(&states.graphs()[row..=row])?;
            Ok(text.trim_end().replace('\n', "; "))
        }),
    }
}

/// Reads an object from each line of a file. Returns the objects, and the number of lines that are no object
/// of the task.
fn lines<T>(path: &Path, are_numbers: bool, row: RowReader<'_, T>) -> Result<(Vec<T>, usize)> {
    let (rows, n_invalid, notes) = samples(&read_text(path)?, are_numbers, row);
    notes.iter().for_each(|note| tell(format_args!("{}: {note}", path.display())));
    Ok((rows, n_invalid))
}
