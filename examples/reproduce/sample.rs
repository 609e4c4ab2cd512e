//! A task that samples objects from a checkpoint of another task, and writes them to a file.

use std::fmt::Display;

use gfn::graph::write_graphs;
use gfn::train::BuildPolicy;
use gfn_dags::{AdjacencyFeatures, BayesianStructure, EdgeTransformer, StructureConfig};
use gfn_gym::bit_sequence::BitSequence;
use gfn_gym::boxes::{BoxEnv, BoxPolicy, BoxPolicyConfig};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::diffusion::{DiffusionPolicy, DiffusionPolicyConfig, DiffusionSampling};
use gfn_gym::discrete_ebm::DiscreteEbm;
use gfn_gym::graph_building::{GraphBuilding, GraphBuildingConfig};
use gfn_gym::line::{Line, LinePolicy, LinePolicyConfig};
use gfn_gym::sequence::TokenSequence;
use gfn_molecules::fragments::Fragments;
use gfn_molecules::qm9str::Qm9Str;

use crate::continuous::diffusion::{posterior_env, target_env};
use crate::molecules::atoms::{Atoms, Trees};
use crate::molecules::seh_frag::{MAX_FRAGMENTS, fragment_library};
use crate::prelude::*;

/// Sample objects from the policy of a checkpoint, and write them to a file
#[derive(Args)]
pub(crate) struct Sample {
    /// Checkpoint of the policy: a folder that `--save` of another task wrote
    #[arg(long)]
    checkpoint: PathBuf,
    /// Number of objects to sample
    #[arg(long, default_value_t = 1_000)]
    samples: usize,
    /// File to write. The extension selects the format. For graphs, `.json` is JSON, `.g6` is graph6 and
    /// `.d6` is digraph6, which store no classes of nodes, and any other extension is an edge list. For
    /// molecules, `.smi` is a SMILES per line, and the other extensions are those of graphs. Vectors and
    /// points are written as JSON (`.json`) or as CSV (any other extension)
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    machine: Machine,
}

/// The settings of a task in the description of its checkpoint.
#[derive(Deserialize)]
#[serde(tag = "example", rename_all = "snake_case")]
enum Saved {
    Ring {
        nodes: usize,
        kind: GraphKind,
    },
    AllGraphs {
        max_nodes: usize,
    },
    ColoredGraphs {
        max_nodes: usize,
        corrects_symmetry: bool,
    },
    #[serde(alias = "dag_from_csv")]
    BayesianStructure {
        nodes: usize,
        policy: String,
        network: Value,
    },
    #[serde(alias = "molecule_external")]
    Molecule {
        built_of: Atoms,
    },
    Fragments {
        built_of: Trees,
    },
    SehFrag {
        reduced: bool,
    },
    #[serde(alias = "peaks", alias = "exploration", alias = "local_search", alias = "offline")]
    Hypergrid {
        ndim: usize,
        height: usize,
    },
    BitSequence {
        n_bits: usize,
    },
    #[serde(alias = "ising")]
    DiscreteEbm {
        spins: usize,
    },
    Qm9str,
    Tfbind8,
    Box {
        delta: f64,
        polar: bool,
        network: BoxPolicyConfig,
    },
    Line {
        n_steps: usize,
        network: LinePolicyConfig,
    },
    Diffusion {
        target: String,
        horizon: usize,
        network: DiffusionPolicyConfig,
    },
    DiffusionPosterior {
        network: DiffusionPolicyConfig,
    },
}

/// The largest number of objects that are sampled in one batch.
const CHUNK: usize = 4_096;

impl Task for Sample {
    fn run(&self) -> Result<()> {
        try_file(&self.out)?;
        let checkpoint = Checkpoint::load(&self.checkpoint)?;
        let distinct = self.write_samples(&checkpoint)?;
        let count = self.samples;
        let step = checkpoint.manifest().step;
        report_file(&self.out);
        tell(format_args!("{count} samples, {distinct} distinct, of a policy after {step} steps"));
        if self.machine.json {
            print(
                json!({ "example": "sample", "seed": self.machine.seed, "count": count, "distinct": distinct,
                "step": step, "out": self.out }),
            )?;
        }
        Ok(())
    }
}

impl Sample {
    /// Samples from the policy of the checkpoint and writes the file. Returns the number of distinct samples.
    fn write_samples(&self, checkpoint: &Checkpoint) -> Result<usize> {
        match self.task(checkpoint)? {
            Saved::Ring { nodes, kind } => self.graphs(Ring::new(nodes, kind)?.into_env()),
            Saved::AllGraphs { max_nodes } => {
                let config = GraphBuildingConfig::new(GraphKind::Undirected, max_nodes);
                self.graphs(GraphBuilding::new(config)?.into_env())
            }
            Saved::ColoredGraphs { max_nodes, corrects_symmetry } => {
                let env = ColoredGraphs::new(max_nodes)?.into_env();
                self.graphs(env.with_symmetry_correction(corrects_symmetry))
            }
            Saved::BayesianStructure { nodes, policy, network } => {
                self.structures(checkpoint, nodes, &policy, network)
            }
            Saved::Molecule { built_of } => {
                let molecules = built_of.env()?;
                let codec = molecules.codec();
                self.molecules(molecules.env().clone(), |graph| codec.molecule(graph))
            }
            Saved::Fragments { built_of } => {
                let (library, env) = built_of.build()?;
                self.molecules(env, |graph| library.molecule(graph))
            }
            Saved::SehFrag { reduced } => {
                let library = fragment_library(reduced)?;
                let env = Fragments::new(&library, MAX_FRAGMENTS)?.into_env();
                self.molecules(env, |graph| library.molecule(graph))
            }
            Saved::Hypergrid { ndim, height } => self.vectors(HyperGrid::new(ndim, height)?.env()),
            Saved::BitSequence { n_bits } => self.vectors(BitSequence::new(1, n_bits)?.env()),
            Saved::DiscreteEbm { spins } => self.vectors(DiscreteEbm::new(spins)?.env()),
            Saved::Qm9str => self.vectors(Qm9Str.env()),
            Saved::Tfbind8 => self.vectors(TokenSequence::tf_bind_8().env()),
            continuous => self.points(checkpoint, continuous),
        }
    }

    /// Reads the settings of the checkpoint's task.
    fn task(&self, checkpoint: &Checkpoint) -> Result<Saved> {
        let description: Value = checkpoint.description()?;
        let refuse = |problem: &str, remedy| Err(Error::file(&self.checkpoint, problem, remedy));
        if description["example"] == "graph_problem" {
            let problem = "this is a checkpoint of `graph-problem`, whose objects belong to an input graph";
            return refuse(problem, "give the checkpoint and a graph to the task `solve`");
        }
        if description["network"]["estimators"]["n_conditions"].as_i64().is_some_and(|n| n > 0) {
            let problem = "its policy takes conditions, such as an exponent of the reward or preferences, \
                which this task has no flags for";
            return refuse(problem, "give the checkpoint of a policy without conditions");
        }
        checkpoint.description()
    }

    /// Draws samples in batches.
    fn draw<E: Env>(&self, env: &E, policy: &dyn Policy<E>) -> Result<E::States> {
        let mut rng = Rng::seeded(self.machine.seed);
        let mut samples = env.initial(&[]);
        while samples.len() < self.samples {
            let n = CHUNK.min(self.samples - samples.len());
            samples.append(Sampler::new(env, policy).forward(n, &mut rng)?.terminal_states().clone());
        }
        Ok(samples)
    }

    /// Draws samples of a policy that is built from the settings in the checkpoint.
    fn draw_loaded<E: BuildPolicy>(&self, env: E) -> Result<(E, E::States)> {
        let loaded = gfn::load_with_env(&self.checkpoint, env, self.machine.device()?)?;
        let samples = self.draw(&loaded.env, loaded.policy.as_ref())?;
        Ok((loaded.env, samples))
    }

    /// Draws samples of a policy that has the parameters of the checkpoint.
    fn draw_restored<E: Env>(
        &self,
        checkpoint: &Checkpoint,
        env: &E,
        policy: Result<impl Policy<E>>,
    ) -> Result<E::States> {
        let policy = policy?;
        let remedy = "give the checkpoint of a network";
        let missing = || Error::missing("a checkpoint", "a policy with parameters", remedy);
        checkpoint.restore(policy.parameters().ok_or_else(missing)?)?;
        self.draw(env, &policy)
    }

    fn graphs(&self, env: GraphEnv) -> Result<usize> {
        self.refuse_smiles()?;
        let (env, graphs) = self.draw_loaded(env)?;
        self.write_graphs(&env, &graphs)
    }

    /// Returns an error if the file would be one of SMILES.
    fn refuse_smiles(&self) -> Result<()> {
        if self.out.extension().is_none_or(|extension| extension != "smi") {
            return Ok(());
        }
        let expected = "another extension, because only molecules have SMILES";
        Err(Error::config("--out", self.out.display(), expected))
    }

    fn write_graphs(&self, env: &GraphEnv, graphs: &GraphStates) -> Result<usize> {
        write_graphs(&self.out, graphs.graphs())?;
        Ok(env.keys(graphs).into_iter().collect::<BTreeSet<_>>().len())
    }

    fn molecules(&self, env: GraphEnv, read: impl Fn(&GraphState) -> Result<Molecule>) -> Result<usize> {
        let (env, graphs) = self.draw_loaded(env)?;
        if self.out.extension().is_none_or(|extension| extension != "smi") {
            return self.write_graphs(&env, &graphs);
        }
        let mut lines = Vec::with_capacity(graphs.len());
        for graph in graphs.graphs() {
            lines.push(format!("{}\n", read(graph)?.smiles()));
        }
        self.write(&lines.concat())?;
        Ok(lines.into_iter().collect::<BTreeSet<_>>().len())
    }

    /// Samples acyclic graphs. The networks of the package `gfn-dags` are built from the description.
    fn structures(
        &self,
        checkpoint: &Checkpoint,
        nodes: usize,
        policy: &str,
        network: Value,
    ) -> Result<usize> {
        self.refuse_smiles()?;
        let env = BayesianStructure::new(StructureConfig::new(nodes))?.env().clone();
        let device = self.machine.device()?;
        let rng = &mut Rng::seeded(0);
        let graphs = match policy {
            "mlp" => {
                let features = AdjacencyFeatures::new(nodes);
                let policy = MlpPolicy::new(&env, features, read(network)?, device, Kind::Float, rng);
                self.draw_restored(checkpoint, &env, policy)?
            }
            "transformer" => {
                let net = EdgeTransformer::new(&env, read(network)?, device, Kind::Float, rng);
                self.draw_restored(checkpoint, &env, net.map(GraphPolicy))?
            }
            _ => return self.graphs(env),
        };
        self.write_graphs(&env, &graphs)
    }

    fn vectors(&self, env: VectorEnv) -> Result<usize> {
        let (_, vectors) = self.draw_loaded(env)?;
        self.write_rows(vectors.rows().map(<[u16]>::to_vec).collect())
    }

    /// Samples points of a continuous task, whose policy is built from the description.
    fn points(&self, checkpoint: &Checkpoint, task: Saved) -> Result<usize> {
        let device = self.machine.device()?;
        let rng = &mut Rng::seeded(0);
        let float = Kind::Float;
        let points = match task {
            Saved::Box { delta, polar, network } => {
                let env = if polar { BoxEnv::polar(delta)? } else { BoxEnv::cartesian(2, delta)? };
                self.draw_restored(checkpoint, &env, BoxPolicy::new(&env, network, device, float, rng))?
            }
            Saved::Line { n_steps, network } => {
                let env = Line::new(n_steps)?;
                self.draw_restored(checkpoint, &env, LinePolicy::new(&env, network, device, float, rng))?
            }
            Saved::Diffusion { target, horizon, network } => {
                let (env, target) = target_env(&target, horizon)?;
                let langevin = network.langevin_clip.map(|_| target);
                let policy = DiffusionPolicy::new(&env, network, langevin, device, float, rng);
                self.draw_restored(checkpoint, &env, policy)?.points
            }
            Saved::DiffusionPosterior { network } => {
                let env: DiffusionSampling = posterior_env()?;
                let policy = DiffusionPolicy::new(&env, network, None, device, float, rng);
                self.draw_restored(checkpoint, &env, policy)?.points
            }
            _ => {
                return Err(Error::file(
                    &self.checkpoint,
                    "its task has no points",
                    "give another checkpoint",
                ));
            }
        };
        self.write_rows(points.rows().map(<[f64]>::to_vec).collect())
    }

    /// Writes rows of numbers as JSON or CSV. Returns the number of distinct rows.
    fn write_rows<T: Display + Serialize>(&self, rows: Vec<Vec<T>>) -> Result<usize> {
        let mut lines = Vec::with_capacity(rows.len());
        for row in &rows {
            let cells: Vec<String> = row.iter().map(T::to_string).collect();
            lines.push(cells.join(","));
        }
        if self.out.extension().is_some_and(|extension| extension == "json") {
            self.write(&format!("{}\n", json!(rows)))?;
        } else {
            let names: Vec<String> =
                (0..rows.first().map_or(0, Vec::len)).map(|column| format!("x{column}")).collect();
            self.write(&format!("{}\n{}\n", names.join(","), lines.join("\n")))?;
        }
        Ok(lines.into_iter().collect::<BTreeSet<_>>().len())
    }

    fn write(&self, text: &str) -> Result<()> {
        std::fs::write(&self.out, text).map_err(|source| Error::io(&self.out, source))
    }
}

/// Reads the settings of a network.
fn read<T: for<'de> Deserialize<'de>>(network: Value) -> Result<T> {
    let expected = "the settings that the task writes";
    serde_json::from_value(network)
        .map_err(|error| Error::config("the settings of a network in the checkpoint", error, expected))
}
