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

/// The flags that choose a task whose exact distribution is known.
#[derive(Args)]
pub(super) struct TaskArgs {
    /// Task whose exact distribution is used
    #[arg(value_enum)]
    task: TaskName,
    /// Size of the task: points along each dimension of a grid (by default 8), nodes of a ring (4), largest
    /// number of nodes of a coloured graph (5) or of atoms of a molecule (4), variables of a structure (5),
    /// species of a tree (7)
    #[arg(long)]
    size: Option<usize>,
    /// Number of dimensions of a grid
    #[arg(long, default_value_t = 2)]
    ndim: usize,
    /// CSV file with the rewards of all DNA sequences, under the header `sequence,reward`
    #[arg(long, required_if_eq("task", "tfbind8"))]
    table: Option<PathBuf>,
    /// FASTA file with the DNA sequences of the species of a tree; the first sequences are used. The default
    /// is seven made-up sequences
    #[arg(long)]
    alignment: Option<PathBuf>,
}

/// The default DNA sequences of seven species, in FASTA. In every tree, some position of the sequences needs
/// more than one mutation.
const SPECIES: &str = ">0\nACGTACGTTGCA\n>1\nACGTACGATGCA\n>2\nACGAACGATGTA\n>3\nTCGAACCATGTA\n\
>4\nTCGAGCCATCTA\n>5\nTCCAGCGTTCTG\n>6\nACCAGTGTTCTG\n";

/// The tasks whose exact distribution is known. Each has the default settings of the task of `reproduce` with
/// the same name.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum TaskName {
    /// Points of a grid. Format: the coordinates of a point on each line
    Grid,
    /// Directed graphs on labelled nodes, of which rings have the largest reward. Format: digraph6, or edge
    /// lists
    Ring,
    /// Connected graphs of two-coloured nodes, up to isomorphism. Format: edge lists
    ColoredGraphs,
    /// Molecules of C, N and O. Format: SMILES
    Molecule,
    /// Structures of a Bayesian network. Format: digraph6, or edge lists
    Structure,
    /// Strings of five blocks, each one of eleven small molecules. Format: the indices of the five blocks,
    /// from 0 to 10
    Qm9str,
    /// DNA sequences of eight letters. Format: the letters
    Tfbind8,
    /// Rooted trees, with a reward by parsimony. Format: Newick, with species as numbers from 0 or as names
    /// in the alignment
    Trees,
}

/// A function that reads states from a file. The function also returns the number of the file's samples that
/// aren't states of the task.
type Reader<S> = Box<dyn Fn(&Path) -> Result<(S, usize)>>;
/// A function that returns the text of the state with this index.
type Writer<S> = Box<dyn Fn(&S, usize) -> Result<String>>;

/// A task whose states can be listed: its environment and reward, and functions that read and write its
/// objects.
pub(super) struct KnownTask<E: EnumerableEnv> {
    pub(super) env: E,
    pub(super) reward: Box<dyn Reward<E::States>>,
    pub(super) read: Reader<E::States>,
    pub(super) write: Writer<E::States>,
}

/// A function that takes a [`KnownTask`] with any environment. It is declared as a trait with one method,
/// because a closure can't be generic over the environment.
pub(super) trait Visit {
    fn visit<E: EnumerableEnv>(self, known: KnownTask<E>) -> Result<()>;
}

/// The largest number of states that are listed. A larger task is an error.
const LISTED: usize = 2_000_000;

impl<E: EnumerableEnv> KnownTask<E> {
    pub(super) fn list(&self) -> Result<ListedTask<E>> {
        let graph = StateGraph::build(&self.env, LISTED)?;
        let target = graph.target_distribution(&self.reward, None)?;
        let grouping = graph.objects(&self.env)?;
        Ok(ListedTask { graph, target, object_of: grouping.group_of, first: grouping.first })
    }
}

/// All states of a task, its target, and the grouping of states into objects. An object may have several
/// states.
pub(super) struct ListedTask<E: EnumerableEnv> {
    pub(super) graph: StateGraph<E>,
    pub(super) target: Target,
    /// The index of the object that each state belongs to.
    pub(super) object_of: Vec<usize>,
    /// The index of one state of each object.
    pub(super) first: Vec<usize>,
}

impl<E: EnumerableEnv> ListedTask<E> {
    /// Returns the probability of each object: the sum of the probabilities of its states.
    pub(super) fn object_probs(&self, of_states: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.first.len()];
        for (&object, p) in self.object_of.iter().zip(of_states) {
            out[object] += p;
        }
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
                let env = problem.structures()?.into_env();
                let reward = problem.reward(&env)?;
                visit.visit(graphs(env, reward, GraphFormat::Graph6))
            }
            TaskName::Molecule => visit.visit(molecules(size(4))?),
            TaskName::Qm9str => visit.visit(numbers(Qm9Str.env(), Qm9StrReward::standard(), 1)),
            TaskName::Tfbind8 => {
                let sequence = TokenSequence::tf_bind_8();
                let dna = Alphabet::dna();
                let path = self.table.as_ref().ok_or(Error::missing(
                    "tfbind8",
                    "a table",
                    "give its path by --table",
                ))?;
                let env = sequence.env();
                let reward = TableReward::read(&sequence, &dna, path, None)?;
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
        // Rewards are divided by the reward of the best tree. Otherwise, the rewards of trees on long
        // sequences would be tiny numbers.
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
    let codec = molecules.codec().clone();
    let writer = molecules.codec().clone();
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
            // The initial state is a graph without atoms, which has no SMILES. The text of this state is
            // empty.
            if graph.n_nodes() == 0 { Ok(String::new()) } else { Ok(writer.molecule(graph)?.smiles()) }
        }),
    })
}

/// Returns a task whose objects are written as numbers, one object per line. Each number is an entry of the
/// object's vector minus `offset`.
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

/// Returns a task whose objects are vectors. A file has one object per line, which `row` reads; `write`
/// returns the text of an object.
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
            // A file whose lines have several words isn't graph6, and is read as edge lists. An edge list has
            // several lines for each graph, so the file is read as a whole.
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

/// Reads an object from each line of a file. Also returns the number of lines that aren't objects of the
/// task.
fn lines<T>(path: &Path, are_numbers: bool, row: RowReader<'_, T>) -> Result<(Vec<T>, usize)> {
    let (rows, n_invalid, notes) = samples(&read_text(path)?, are_numbers, row);
    for note in &notes {
        tell(format_args!("{}: {note}", path.display()));
    }
    Ok((rows, n_invalid))
}
